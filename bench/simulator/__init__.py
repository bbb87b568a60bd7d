"""Clusters on a virtual clock: what a migration, a rebalancing or a change of scale would do on machines that are not
here. Costs are measured on this machine; strategies, controllers, planners and the autoscaler are the real ones.

- `costs`: what was measured, as plain data, and a file of it. `measured.json`: the last measurement that was kept.
- `cluster`: machines, cores, links and stragglers. `workload`: records, bins and bytes of state over time.
- `clockwork`: the run itself: epochs, migrations and snapshots as events on a virtual clock.
- `steering`: what the real controller sees of a run. `scaling`: what the real autoscaler sees and asks for.
- `probing`: real runs on this machine, to take costs from and to compare with. `fitting`: from these to costs.
- `validation`: the same runs, real and simulated, side by side.

The page is docs/internals/simulator.md; `python -m bench run simulator` measures, fits and validates.
"""
