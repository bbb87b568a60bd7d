"""The experiments; every module in this folder is found, so a new one need not be listed anywhere."""
