"""The engine as its users meet it, written from the specification: every operator against a few lines of plain Python.

- `harness`: ways to run a program (really, or under seeds of the simulated scheduler), and what came out of it.
- `test_rows`, `test_grouping`, `test_delay`, `test_loops`, `test_sources`, `test_sinks`, `test_replay`, `test_inputs`,
  `test_probes`: the operators, one file per family.
- `test_capabilities`, `test_notificators`, `test_activations`: what operators are made of.
- `test_construction`, `test_errors`, `test_mismatch`: misuse, and what it leaves behind.
- `test_timestamps`, `test_worker`, `test_explain`, `test_simulate`, `test_hashing`, `test_codec`, `test_front_door`,
  `test_examples`.

"""
