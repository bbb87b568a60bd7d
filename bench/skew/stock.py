"""Stock exchange: transactions by stock, with sudden bursts; for a self-join over a window that finds busy players."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.skew.zipf import sample, zipf

Columns = dict[str, NDArray[np.int64]]


def stock(
    records: int,
    *,
    stocks: int = 1_036,
    players: int = 20_000,
    z: float = 0.7,
    bursts: int = 8,
    intervals: int = 3,
    length: int = 86_400_000,
    seed: int = 0,
) -> Iterator[Columns]:
    """Per interval, columns `time` (ms, ascending), `stock`, `player`, `side` (+1 buys, -1 sells), `price` (in cents)
    and `volume`.

    In each interval some stocks burst: traded five to fifty times as often as their rank says, and only then. The
    paper's data are 3 days of over 6,000,000 records with 1,036 stocks.
    """
    rng = np.random.default_rng(seed)
    base = rng.permutation(zipf(stocks, z))
    activity = rng.permutation(zipf(players, 0.9))
    price = rng.uniform(100, 20_000, stocks)
    for interval in range(intervals):
        frequency = base.copy()
        frequency[rng.choice(stocks, min(bursts, stocks), replace=False)] *= rng.uniform(5, 50, min(bursts, stocks))
        chosen = sample(frequency, records, rng)
        price *= np.exp(rng.normal(0, 0.02, stocks))
        yield {
            "time": interval * length + np.sort(rng.integers(0, length, records)),
            "stock": chosen,
            "player": sample(activity, records, rng),
            "side": np.where(rng.random(records) < 0.5, 1, -1),
            "price": np.maximum(1, price[chosen] * np.exp(rng.normal(0, 0.002, records))).astype(np.int64),
            "volume": rng.integers(1, 100, records) * 100,
        }
