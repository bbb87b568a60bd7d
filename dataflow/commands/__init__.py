"""Commands of `python -m dataflow`, each in a module of its own.

- `snapshots`: lists snapshots, verifies them, shows what is in them. `inspecting`: the state of an operator as a table.
- `listing`: the runs that have a name. `save`: a savepoint of one of them.
- `tables`: text for people.
"""
