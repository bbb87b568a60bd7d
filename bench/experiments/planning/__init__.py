"""What the interval planners cost and save.

- `ssm_speed`: how long `ssm` takes, and how that grows.
- `workload`: a word count's tasks, and node counts over a month of hours. `walks`: many migrations in a row.
- `sequences`: what each planner's migrations cost in the mean. `figures`: Figures 12 to 15 and 17 of the live version.
"""
