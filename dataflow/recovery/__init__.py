"""Snapshots at a time, and going on from them. docs/internals/recovery.md is the specification.

- `policy`: what users say: where, how often, when to give up.
- `storage`: where snapshots are kept, as an interface. `local`: in a folder. `memory`: in this process.
  `object_store`: S3 and its like. `opening`: from an address to one of those. `faulty`: one for simulations, that
  delays, fails and forgets. `direct`: files past the system's cache. `backstage`: a thread that works behind
  the stream.
- `manifest`: what a snapshot consists of. `format`: that as bytes. `part_files`: files of state.
- `catalogue`: the manifests in a storage: choosing, claiming, committing, savepoints. `retention`: what is deleted.
- `keeper`: takes the snapshots of a dataflow on a worker. `gates`: how far operators may go; pure. `announcing`: when a
  snapshot is taken. `parts`: what is said about it. `pacing`: how fast it is written. `committing`: the manifest, and
  the news of it. `restoring`: what was saved comes back. `reading`: files, several at once. `vault`: the storage as
  keepers see it. `main_values`: what main saves. `savepoints`: snapshots that somebody wants now, under a name.
  `between`: no worker joins or leaves during a cut.
- `beginning`: chooses and claims where a life goes on; `resume`: what workers are told of it. `restarts`: whether a run
  that has failed is tried again; pure. `again`: does so for workers that share one process.
"""
