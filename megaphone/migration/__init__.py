"""Migrations, step by step.

- `strategies`: how a migration is cut into steps: all at once, fluid, batched or matched. Pure.
- `controller`: sends each step on the control stream when the one before is complete.
- `group`: several operators that migrate together.
"""
