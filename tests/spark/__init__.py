"""Workers as guests of Spark: parts by themselves, a session on this machine, and a cluster of master and workers."""
