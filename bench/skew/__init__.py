"""Workloads of the skew-and-variance paper's section V, as arrays: what its figures are drawn from.

- `zipf`: finite Zipf frequencies over a key domain, with skew z from 0 to 1; records of them.
- `fluctuation`: intervals whose frequencies change, by the rate f.
- `social` (word count), `stock` (self-join), `tpch` (the tables of Q5): columns of records for dataflows.
- `queries`: those dataflows, native or with operators that migrate.

Whatever is random takes a seed or a generator.
"""

from bench.skew.fluctuation import fluctuate, intervals
from bench.skew.social import social, vocabulary
from bench.skew.stock import stock
from bench.skew.tpch import Q5Tables, tpch
from bench.skew.zipf import consistent, frequencies, hashed, sample, zipf

__all__ = [
    "Q5Tables",
    "consistent",
    "fluctuate",
    "frequencies",
    "hashed",
    "intervals",
    "sample",
    "social",
    "stock",
    "tpch",
    "vocabulary",
    "zipf",
]
