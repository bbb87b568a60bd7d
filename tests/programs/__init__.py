"""Programs with known answers: each is run on 1 to 4 workers, under many seeds, and compared with an oracle.

- One file per program. `main(worker, ...)` is the program; `check(run, chance)` makes an input from `chance`, runs the
  program with `run` (see `running`) and compares the results of all workers with an oracle of `tests.oracles`.
- `cases`: all of them by name, and `run_case(seed)`, a random one, for `make soak`.
- `test_programs` runs every program; `test_seeds` tests the seeded scheduler itself.
"""
