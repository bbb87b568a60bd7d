"""What a time is, and how times compare.

- `order`: the partial order of time, and what a user's own timestamps and summaries must supply.
- `timestamp`: time domains: integers, products, users' classes; debug mode verifies the laws of an order.
- `antichain`: sets of mutually incomparable times, which is what a frontier is.
- `durations`: "250ms", timedeltas and datetimes as whole numbers.
"""
