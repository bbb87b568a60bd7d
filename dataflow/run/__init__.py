"""Running a dataflow on a worker."""
