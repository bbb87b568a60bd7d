"""The tables that TPC-H Q5 reads, at any scale, with skewed foreign keys (section V: z = 0.8).

Q5 asks for the revenue that suppliers made with customers of their own nation, by nation, in one region and one year.
As a continuous query, orders and their lines arrive in the order of `orders["arrival"]`, and the year is a window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.skew.zipf import sample, zipf

Numbers = dict[str, NDArray[np.int64]]  # by column
Named = dict[str, NDArray[np.int64] | NDArray[np.str_]]  # the same, with names among them

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2),
    ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
DAYS = 2_406  # order dates: 1992-01-01 to 1998-08-02, as days from the first


@dataclass(frozen=True, eq=False)
class Q5Tables:
    """Columns by table, named as in TPC-H without prefixes; money in cents, discounts in percent, dates in days."""

    region: Named
    nation: Named
    customer: Numbers
    supplier: Numbers
    orders: Numbers
    lineitem: Numbers


def tpch(scale: float = 0.01, *, z: float = 0.8, seed: int = 0) -> Q5Tables:
    """At scale 1 as large as DBGen's (1.5 million orders, some 6 million lines); foreign keys follow Zipf(z)."""
    if not scale > 0:
        raise ValueError(f"the scale must be above 0, not {scale}; 1 is a gigabyte of TPC-H")
    rng = np.random.default_rng(seed)
    customers, suppliers = max(1, round(150_000 * scale)), max(1, round(10_000 * scale))
    orders = max(1, round(1_500_000 * scale))
    lines = rng.integers(1, 8, orders)
    count = int(lines.sum())
    return Q5Tables(
        region={"regionkey": np.arange(5), "name": np.array(REGIONS)},
        nation={
            "nationkey": np.arange(25),
            "name": np.array([name for name, _ in NATIONS]),
            "regionkey": np.array([region for _, region in NATIONS]),
        },
        customer={"custkey": np.arange(customers), "nationkey": rng.integers(0, 25, customers)},
        supplier={"suppkey": np.arange(suppliers), "nationkey": rng.integers(0, 25, suppliers)},
        orders={
            "orderkey": np.arange(orders),
            "custkey": _skewed(customers, z, orders, rng),
            "orderdate": np.sort(rng.integers(0, DAYS, orders)),
            "arrival": np.arange(orders),
        },
        lineitem={
            "orderkey": np.repeat(np.arange(orders), lines),
            "suppkey": _skewed(suppliers, z, count, rng),
            "extendedprice": rng.integers(90_000, 10_500_000, count),
            "discount": rng.integers(0, 11, count),
        },
    )


def _skewed(keys: int, z: float, records: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.permutation(keys)[sample(zipf(keys, z), records, rng)]
