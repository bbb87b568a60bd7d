"""Workers that join and leave while dataflows run. docs/internals/membership.md is the specification.

- `history`: who takes part in a dataflow, as a function of time; pure
- `roster`: who is there, who may be given work, who is leaving
- `barrier`: the protocol of one change, on every worker: stop, decide, install; pure
- `changing`: carries out what the protocol says on one worker: stops it, reports, decides, installs
- `preparing`: what a joiner gets ready before anybody waits for it
- `joining`: what a joiner is told when it joins, and how its dataflows begin
- `decisions`: what a change says of a dataflow: its time, rights that are minted, what is handed over
- `following`: what an operator must know of a change, and which operators cannot follow one
- `holding`: what is sent from outside of operators while a worker is stopped
- `reading`: who reads which partition of a source; pure
- `channels`: exchanges that ask who takes part at a time
- `scaling`: from "four workers" to changes: starts joiners, moves state, sees leavers off
- `invited`: workers that come from elsewhere: hosts that join, guests that were invited
- `asking`: how main asks, on any worker
- `leaving`: when a leaver has nothing left
- `reports`: what workers report when they have stopped, and what the leader makes of it
- `plain`: reading what has travelled
- `requests`: what a program sees of that: `worker.scale`, `worker.members`
"""
