"""Snapshots at a time, and going on from them. docs/internals/recovery.md is the specification.

- `policy`: what users say: where, how often, when to give up.
- `storage`: where snapshots are kept, as an interface. `local`: in a folder. `memory`: in this process.
  `object_store`: S3 and its like. `opening`: from an address to one of those. `faulty`: one for simulations, that
  delays, fails and forgets.
- `manifest`: what a snapshot consists of. `format`: that as bytes. `part_files`: files of state.
- `catalogue`: the manifests in a storage: choosing, claiming, committing, savepoints. `retention`: what is deleted.
  `beginning`: how a run begins.
"""
