"""Rebalancing under skew: which keys, or bins, should leave where the hash function puts them.

- `problem`: what a planner is given, checked. `plan`: what it returns, measured.
- `heuristics`: LLFD, MinTable, MinMig, Mixed, MixedBF; `workflow`: their three phases; `kernels`: phases II and III,
  compiled; `compiling`: the decorator of kernels that divide as numpy does.
- `vectors`: the compact form, keys as six-dimensional vectors with counts, and back; `hlhe`: the discretisation.
- `readj`, `pkg`: what the paper compares with; the latter is a router, not a planner.
- `sketch`: heavy keys of a stream, by `megaphone`'s sketch. It imports `megaphone` when it is asked for one.

All planners are called alike: ``planner(cost, state, home=, current=, instances=, theta=, ...) -> RebalancePlan``.
"""

from planners.rebalance.heuristics import llfd, min_mig, min_table, mixed, mixed_bf
from planners.rebalance.hlhe import hlhe
from planners.rebalance.pkg import PartialKeyGrouping, merge, pkg
from planners.rebalance.plan import MovedKeys, RebalancePlan, RoutingTable
from planners.rebalance.readj import readj
from planners.rebalance.vectors import Vectors, compact

__all__ = [
    "MovedKeys",
    "PartialKeyGrouping",
    "RebalancePlan",
    "RoutingTable",
    "Vectors",
    "compact",
    "hlhe",
    "llfd",
    "merge",
    "min_mig",
    "min_table",
    "mixed",
    "mixed_bf",
    "pkg",
    "readj",
]
