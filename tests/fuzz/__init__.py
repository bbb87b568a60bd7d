"""Random programs, run by the engine and evaluated directly: whatever comes out must be the same.

- `description`: a program as data: dataflows of nodes, what is fed to them and when, what migrates.
- `functions`: the programs' own functions of records, for scalars and for arrays alike.
- `direct`, `direct_state`: what a program means, in plain Python: a bag of records by time for each stream. They share
  nothing with the engine.
- `generating`: a random description from a seed; `migrating`: its random migrations.
- `build_rows`, `build_columns`, `build_state`, `folds`: a description as a dataflow.
- `running`: the main that builds and feeds it, the ways to run it, and the comparison.
- `shrinking`: the smallest program found that still fails. `mutants`: faults that must be found.
"""
