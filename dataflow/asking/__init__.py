"""Asking a running program something from another shell: each named run has a Unix socket of its owner's; and, if it is
told to, an address on the network for those who know its secret.

- `naming`: the name of a run that was given none. `folder`: where the sockets of runs are, and that nobody else can put
  one there. `door`: a run's socket, from its start to its end. `serving`: answers who connects; bounded in time and
  size. `messages`: what is said; pure.
- `network`: the door to the network. `elsewhere`: asks there.
- `run`: what answers can reach: facts of the run, and its workers. `client`: asks.
- `answers`: one module for each question.

docs/internals/asking.md has the protocol and what must hold.
"""
