"""Real processes, killed with SIGKILL at random moments, and what they wrote in the end.

- `word_count`, `killed_query`: the programs, as users would write them. `kills`: who is killed, and the comparison.
- `scaled_count`: a program whose workers come and go. `scaled`: who comes, goes and is killed, and what must be there.
"""
