"""Rebalancing planners against slow oracles (`oracle.py`), and the sketch and workloads that go with them."""
