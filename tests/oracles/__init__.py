"""Oracles: the shortest programs that are obviously right. They share no code with what they judge.

- `progress`: frontiers, could-result-in and unadvanced cycles, by pushing times along hops until nothing changes.
- `graphs`: reachability, distances, components and PageRank, by repetition until nothing changes.
- `tables`: joins and counts, by looking at everything. `loops`: one record after the other.
- `auction_site`: NEXMark's events, one by one.
"""
