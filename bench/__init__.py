"""Measurements: yardsticks and benchmarks of each part, and one experiment per measured figure of the papers.

``python -m bench --help`` is the way in. An experiment is a function that takes a `Run` and reports numbers to it:

- `registry`: the decorators `@benchmark` and `@figure`, and where experiments are found.
- `run`: what an experiment is given: its length (`quick`), a progress bar, and `report`.
- `experiments`: the experiments themselves; a module put there is found without being listed in code anywhere.
- `timing`: how a short piece of code is timed. `medians`: several runs as one.
- `counting`: hash count and key count, which several experiments share. `joining`: windowed joins in columns.
  `epochs`: closed loops of tiny epochs. `sampling`: where their time goes. `footprint`: what a migration costs in
  memory. `stalls`: which epochs the host held up.
  `attribution`: where the time of a worker goes, by purpose. `skew`: the workloads of the skew-and-variance paper.
  `patterns`: frequent patterns over a window, an application of the paper on optimal migration.
- `recovering`: a count that is killed and goes on. `killing`: programs that are started, read and killed. `rivals`:
  what other systems do with the same.
- `simulator`: clusters on a virtual clock, from measured costs.
- `endure`: hours of one run with its troubles (`make endure`).
- `papers`: which figures the papers have, drawn here or not.
- `command`: the command line (`__main__`); `table`, `progress`, `document`: what a person sees and what a file keeps.

What the numbers were taken on (machine, revision, command), open-loop runs and plots are in `megaphone.harness`.

Compare ratios taken in one run; absolute times on a shared machine say little.
"""
