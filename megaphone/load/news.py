"""What an operator's bins cost, for those who look at a run from outside (`dataflow.build.hooks.Loads`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from dataflow.build.hooks import LoadNews, ShardLoads, ShardReport
from dataflow.state.values import Key
from megaphone.keys.keyspace import KeySpace, as_list
from megaphone.load.statistics import Load, Statistics

MOST_KEPT = 1 << 20  # bins in reports that are kept, 32 bytes each
MOST_REPORTS = 512


class LoadHandle(Protocol):
    """What is asked of an operator."""

    statistics: Statistics
    keys: KeySpace[Any]

    @property
    def pinned(self) -> Mapping[Key, int]: ...


class BinLoads:
    """The last report of each bin; and, once somebody has asked for news, the last reports of all workers."""

    def __init__(self, handle: LoadHandle) -> None:
        self._handle = handle
        self._kept: deque[ShardReport] | None = None
        self._number = 0  # of the next report
        self._bins = 0  # in reports that are kept

    def loads(self) -> ShardLoads:
        """The last report of each bin, and the heavy keys of all workers."""
        known = self._handle.statistics
        heavy = [
            (key, records, load.worker)
            for load in known.heavy.values()
            for key, records in zip(load.shown_keys, load.key_records.tolist(), strict=True)
        ]
        heavy.sort(key=lambda each: -each[1])
        return ShardLoads(known.seconds, known.records, known.nanoseconds, known.bytes, heavy)

    def news(self, since: int) -> LoadNews:
        """The reports from a number on, as far as they are kept. O(what they have)."""
        if self._kept is None:
            self._kept = deque()
            self._handle.statistics.listeners.append(self._hear)
        oldest = self._number - len(self._kept)
        first = min(max(since, oldest), self._number)
        pinned = self._handle.pinned
        bins = self._bins_of([*pinned])
        apart = [(key, bin, worker) for (key, worker), bin in zip(pinned.items(), bins, strict=True)]
        lost = first - since if 0 < since < first else 0  # who asks for the first time has missed nothing
        return LoadNews(self._number, tuple(self._kept)[first - oldest :], lost, apart)

    def _hear(self, load: Load) -> None:
        assert self._kept is not None
        keys = as_list(load.keys)
        shards = self._bins_of(keys) if self._handle.keys.pinnable else []
        self._kept.append(
            ShardReport(
                load.worker, load.seconds, load.bins, load.records, load.nanoseconds, load.bytes, keys, shards,
                load.key_records.tolist(), load.per_record, load.is_last,
            )
        )  # fmt: skip
        self._number += 1
        self._bins += len(load.bins)
        while len(self._kept) > 1 and (self._bins > MOST_KEPT or len(self._kept) > MOST_REPORTS):
            self._bins -= len(self._kept.popleft().shards)

    def _bins_of(self, keys: list[Key]) -> list[int]:
        return np.asarray(self._handle.keys.bins_of(keys), np.int64).tolist() if keys else []
