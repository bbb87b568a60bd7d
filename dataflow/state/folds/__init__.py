"""Folds: what a user writes for one record, and how it becomes a compiled loop over a batch.

- `fold`: the decorator, and what is checked before anything runs.
- `driver`: one fold over one table: applies batches, compiled or, for debugging, as plain Python.
- `loop`: the text of the compiled loop. `compiling`: from text to machine code, with the lines of errors.
- `predicates`: functions of two records, compiled in the same way, over many pairs.
- `emitter`: `emit` and `later` inside a fold. `arithmetic`: numbers that compute uncompiled as compiled code does.
"""
