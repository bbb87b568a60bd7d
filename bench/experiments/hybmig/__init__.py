"""The figures of the HybMig paper, 5.1 to 5.8, on a virtual clock.

- `setting`: the paper's parameters and plans, and what arrives.
- `counting`: how many composites there are, without making them.
- `methods`, `hybrid`, `boxes`: MS and PT; HybMig; GMS, GPT and GHM: what each does with a record.
- `clock`: one server that does so many evaluations a second.
- `drawing`, `figures`: the pictures.
"""
