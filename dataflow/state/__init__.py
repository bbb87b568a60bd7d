"""Keyed state: what stateful operators keep from one time to the next.

- `store`: the door. What a store is to those who host it, move it, save it and look into it.
- `host`: the one loop around a store: which records are applied when.
- `durable`: a store as those see it who save and restore it.
- `pieces`: the one form in which state travels.
- `stores`: stores in rows and in columns.

Keys are grouped into bins, which are what moves. Who moves them, and when, is Megaphone's business.
"""
