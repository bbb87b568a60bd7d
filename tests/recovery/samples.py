"""Manifests and pieces to test with."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from dataflow.comm import codec
from dataflow.recovery.manifest import Manifest, SavedFile, SavedOperator, SavedShards


def words(chance: random.Random, length: int) -> NDArray[np.uint64]:
    """So many words, any."""
    return np.frombuffer(chance.randbytes(8 * length), np.uint64)


def saved_file(number: int, live: dict[str, dict[int, int]], total: int | None = None) -> SavedFile:
    """A file that has these words by operator and shard."""
    count = sum(length for shards in live.values() for length in shards.values()) if total is None else total
    digest = f"{number:064x}"
    shards = {operator: SavedShards.of(some) for operator, some in live.items()}
    return SavedFile(f"part-{number:010d}-{digest}.arrow", 8 * count + 1000, digest, number, 0, count, shards)


def sample_manifest(number: int = 7, dataflow: str = "dataflow-0") -> Manifest:
    """A manifest with something in every field."""
    return Manifest(
        dataflow=dataflow,
        number=number,
        incarnation=5,
        time=1234,
        created=1_795_000_000.25,
        workers=2,
        final=False,
        graph="0123abcd",
        operators={"totals": SavedOperator({"store": "rows", "shards": "16"}, 16), "λ": SavedOperator({}, 1)},
        files=(saved_file(6, {"totals": {0: 3, 5: 4}}), saved_file(7, {"totals": {-1: 2, 3: 1}, "λ": {0: 9}})),
        shares={"lines": {0: codec.encode({"a.txt": 17}), 1: codec.encode((1, "x"))}},
        tokens={"sqlite": {0: codec.encode(["out", 12])}},
        previous=6,
        origin="before-the-change",
    )
