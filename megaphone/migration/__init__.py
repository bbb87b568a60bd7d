"""Migrations, step by step.

- `strategies`: how a migration is cut into steps: all at once, fluid, batched or matched. Pure.
- `pacing`: how large steps may be for a bound on the latency. Pure.
- `controller`: sends each step on the control stream when the one before is complete.
- `moving`: bins go to where workers are, when these join and leave.
- `words`: targets and strategies as people write them. Pure. `steering`: migrations that somebody outside asks for.
- `group`: several operators that migrate together.
"""
