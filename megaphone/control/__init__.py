"""What is said on the control stream, and the configurations that follow from it.

- `updates`: `Move`, `Moves` and `Assign`, how they are checked, and their form as lines of JSON. `checks`: of numbers.
- `replans`: `Replan`, what several of them mean together, and what is known of plans. Pure.
- `tree`: which bins there are: `Split`, `Merge`, prefixes. `arranging`: what updates of one time mean together. Pure.
- `configuration`: which worker has which bin at which time, and what migrates when that changes. Pure.
- `files`: updates from a file or a pipe. `tailing`: the bytes of a file that grows, or of a pipe.
"""
