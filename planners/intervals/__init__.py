"""Planners that give each node one interval of tasks, and what they are made of.

- `ssm`: the cheapest single migration; `ssm_kernel`: the compiled dynamic program behind it; `simple_ssm`: the paper's
  recursion, an oracle and the form to read beside the paper.
- `oms`: the cheapest sequence of migrations that are all known ahead.
- `baselines`: Storm's even split, consistent hashing, Redist.
- `assignment`: the request that they all check, and the nodes that they give to intervals.
- `feasibility`: whether tasks can be cut within tau, and the least tau. `partitionings`: every balanced way to cut
  them, counted and enumerated. `matching`: what it costs to go from one to another, and who then owns what.
"""
