"""Compiled code that is kept on disk: the packages' kernels, and users' folds.

- `kernel`: the decorator of kernels, and how what it compiles is found again. `stamp`: all that a kernel depends on.
  `numba_inside`: what is used of numba's inside, with types. `intrinsics`: the types of what defines an intrinsic.
- `cache_folder`: the folder where compiled code is kept, and whether it may be trusted. `entries`: one file for each
  compiled function, with a checksum.
- `ahead`: what workers will import, for the process that they are forked from. `beforehand`: code that a worker which
  joins will need, loaded before the others wait for it.
- `telling`: what people are told: what is being compiled, and what is wrong with the folder.

This package imports nothing by itself: rows need no compiler.
"""
