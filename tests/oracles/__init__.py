"""Oracles: the shortest programs that are obviously right. They share no code with what they judge.

- `progress`: frontiers, could-result-in and unadvanced cycles, by pushing times along hops until nothing changes.
"""
