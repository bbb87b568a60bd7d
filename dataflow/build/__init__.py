"""Building dataflows: what programs and authors of operators write.

- `scope`: where operators are built, the root of a dataflow or a nested scope. `stream`: what operators are applied to;
  `functions`: what it has for functions of single records.
- `builder`: the n-ary builder of operators, and `unary`, `binary` and `unary_notify` on top of it.
- `operator`: an operator at run time: its ports, and the step that the worker calls.
- `hooks`: how recovery, membership and commands reach what an operator keeps, by its name.
- `capability`: the right to send at a time. `notificator`: holds capabilities until their times are complete.
- `hooks`: what the engine asks of stateful operators; through these it reaches the state of a running dataflow.
- `cuts`: what operators have to do with snapshots. `crossings`: records that come in before one and go out after it.
"""
