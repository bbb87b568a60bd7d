"""Compiled code that is kept on disk: the packages' kernels, and users' folds.

- `kernel`: the decorator of kernels, and how what it compiles is found again. `stamp`: all that a kernel depends on.
  `numba_inside`: what both use of numba. `intrinsics`: the types of functions that are written as instructions.
- `place`: where compiled code is kept, and whether it may be trusted. `entries`: one file for each compiled function,
  with a checksum.
- `telling`: saying that something is being compiled, and that something is wrong with the place.

This package imports nothing by itself: rows need no compiler.
"""
