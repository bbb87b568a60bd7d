"""`split` gives each owner its rows, in their order: against a filter per owner."""

from __future__ import annotations

import numpy as np
import pytest

from dataflow.columns import Columns
from dataflow.columns.hashing import Owners, mix, route_dense, route_hashed
from dataflow.columns.scatter import _FEW, split

KINDS = ("i8", "u8", "f8", "i4", "f4", "i2", "u1", "bool", "M8[ms]", "c16", ">i8")


def batch_of(rng: np.random.Generator, size: int) -> Columns:
    """A column of every kind, a string, and one that does not lie in one piece."""
    numbers = rng.integers(0, 200, size)
    columns = {kind: numbers.astype("i8").astype(kind) for kind in KINDS}
    columns["apart"] = np.repeat(numbers, 2)[::2]
    columns["word"] = [f"w{number}" for number in numbers.tolist()]
    return Columns(columns)


@pytest.mark.parametrize("owners", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [0, 1, 5, _FEW - 1, _FEW, 2 * _FEW + 3])
def test_each_owner_gets_its_rows_in_their_order(size: int, owners: int) -> None:
    rng = np.random.default_rng(size * 10 + owners)
    batch = batch_of(rng, size)
    for highest in {owners, max(1, owners - 1), 1}:  # some owners get nothing; one may get everything
        to = rng.integers(0, highest, size).astype(np.uint16)
        parts = split(batch, to, owners)
        assert parts == [batch.filter(to == owner) for owner in range(owners)]
        assert [part[kind].dtype for part in parts for kind in KINDS] == [batch[kind].dtype for kind in KINDS] * owners


def test_what_cannot_be_written_to_can_be_split() -> None:
    column = np.arange(2 * _FEW)
    column.flags.writeable = False
    to = (column % 2).astype(np.uint16)
    to.flags.writeable = False
    evens, odds = split(Columns({"n": column}), to, 2)
    assert evens["n"].tolist() == list(range(0, 2 * _FEW, 2))
    assert odds["n"].tolist() == list(range(1, 2 * _FEW, 2))


@pytest.mark.parametrize("peers", [1, 2, 3, 4, 5, 16, 17, 256, 257])
def test_owners_are_packed_and_found(peers: int) -> None:
    rng = np.random.default_rng(peers)
    for bins in (2, 64, 4096):
        workers = rng.integers(0, peers, bins).astype(np.uint16)
        owners = Owners(workers, peers)
        keys, to = rng.integers(0, 1 << 63, 500).astype(np.uint64), np.empty(500, np.uint16)
        route_dense(keys, bins - 1, owners.words, owners.width, to)
        assert np.array_equal(to, workers[keys % np.uint64(bins)])
        shift = 64 - (bins.bit_length() - 1)
        route_hashed(keys, shift, owners.words, owners.width, to)
        assert np.array_equal(to, workers[[int(mix(key)) >> shift for key in keys]])
