"""What the interval planners cost and save.

- `ssm_speed`: how long `ssm` takes, and how that grows.
- `workload`: a word count's tasks, and node counts over a month of hours. `walks`: many migrations in a row.
- `sequences`: what each planner's migrations cost in the mean. `figures`: Figures 12, 13, 15 and 17 of the live
  version. `pmc_figure`: Figure 14, on Spark. `response`: Figure 16, response time while state moves.
"""
