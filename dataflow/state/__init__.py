"""Keyed state: what stateful operators keep from one time to the next.

- `store`: the door. What a store is to those who host it, move it, save it and look into it.
- `host`: the one loop around a store: which records are applied when.
- `pieces`: the one format of state in transit. `durable`: a store as those see it who save and restore it. `kept`:
  its share of a snapshot. `looking`: single keys, for those who look from outside. `reading`: saved state, read
  without the program that saved it.
  `converting`: saved state with other fields than the program has now.
- `stores`: stores in rows and in columns. `folds`: what users write for one record, compiled. `tables`: rows by key.
  `memory`: where these lie.
- `native`: stateful operators whose state stays on its worker; `native_rows` and `native_columns` make them.
- `values`: names for users' own values. `arrays`: names for ours. `binning`: from the key of a row to its bin.

Keys are grouped into bins, which are what moves. Who moves them, and when, is Megaphone's business.
docs/internals/state.md tells the whole.
"""
