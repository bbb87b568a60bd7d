"""Bins of Python objects in pieces: cut, lost in any order, put together again; and the properties where all go so."""

from __future__ import annotations

import random
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.state.pieces import Piece
from dataflow.state.stores import portions
from dataflow.state.stores.portions import BIN, CUT, NO_STATE, Address, Arriving, depart
from dataflow.state.stores.row_bins import RowBins
from dataflow.testing import simulate
from tests.megaphone.cases import run_case, run_on_processes

STATES: dict[str, Any] = {
    "a dictionary": {number: [number] * (number % 7) for number in range(500)},
    "an empty one": {},
    "long keys": {("key", "x" * 300, number): None for number in range(40)},
    "one long value": {"all": list(range(5000)), "none": []},
    "a list": list(range(700)),
    "nothing": None,
    "no state": NO_STATE,
}
PENDING: dict[str, Any] = {
    "without pending records": {},
    "with many of a time": {7: [(0, number) for number in range(900)], 9: [(1, "x" * 500)]},
    "with many times": {time: [(0, time)] for time in range(300)},
}


@pytest.mark.parametrize("limit", [1, 2, 13, 600, 1 << 17])
@pytest.mark.parametrize("pending", PENDING.values(), ids=PENDING)
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_a_bin_arrives_as_it_left_in_whatever_order_its_pieces_come(state: Any, pending: Any, limit: int) -> None:
    if state is NO_STATE and not pending:
        return
    here = RowBins(dict)
    if state is not NO_STATE:
        here._states[3] = state
    for time, records in pending.items():
        here.put_off(3, time, records)
    pieces = []
    copied = [piece.words.tolist() for piece in here.copy(Address(3), limit)]
    assert 3 in here.numbers
    for piece in here.depart(Address(3), limit):
        assert (3 in here.numbers) == (piece.head[0] != BIN), "it is here until all of it has been encoded"
        assert 1 <= len(piece.words) <= limit
        pieces.append(piece)
    assert [piece.words.tolist() for piece in pieces] == copied
    assert [piece.at for piece in pieces] == list(range(len(pieces)))
    assert [piece.head[0] == BIN for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert here.least_pending is None and not here.numbers
    there = RowBins(dict)
    for count, piece in enumerate(random.Random(limit).sample(pieces, len(pieces)), 1):
        there.arrive(piece)
        assert bool(there.arriving) == (not there.numbers) == (count < len(pieces)), "nothing is half-installed"
    assert there._states == ({} if state is NO_STATE else {3: state})
    if type(state) is dict:
        assert list(there.state(3)) == list(state), "in the same order"
    assert there._pending == ({3: pending} if pending else {})
    assert there.least_pending == min(pending, default=None)


def test_a_large_bin_is_encoded_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is encoded at once is no more than a few messages are long; state that is no dictionary is one."""
    lengths: list[int] = []
    encode = portions.codec.encode

    def note(value: Any, *depth: int) -> bytes:
        lengths.append(len(encode(value, *depth)))
        return encode(value, *depth)

    monkeypatch.setattr("dataflow.state.stores.portions.codec.encode", note)
    large = {number: "x" * (number % 50) for number in range(20_000)}
    pieces = list(depart(Address(0), large, {5: [(0, number) for number in range(20_000)]}, 512))
    assert max(lengths) < 3 * 4096 and len(lengths) > 50
    assert max(len(piece.words) for piece in pieces) <= 512
    lengths.clear()
    list(depart(Address(0), list(range(20_000)), {}, 512))
    assert max(lengths) > 20_000


def test_small_bins_are_one_piece_each() -> None:
    assert [piece.head[0] for piece in depart(Address(0), {n: n for n in range(60)}, {4: [(0, 1)]}, 1 << 17)] == [BIN]


def test_a_bin_that_is_here_already_cannot_arrive() -> None:
    bins = RowBins(dict)
    bins.state(3)
    (piece,) = depart(Address(3), {}, {}, 100)
    with pytest.raises(AssertionError, match="bin 3 is here already"):
        bins.arrive(piece)


def test_pieces_that_are_cut_wait_for_the_rest() -> None:
    arriving = Arriving()
    first, *others, last = depart(Address(0), {"key": "x" * 100}, {}, 2)
    assert first.head[0] == CUT
    assert [arriving.add(piece) for piece in (last, first, *others)] == [False] * (1 + len(others)) + [True]
    assert arriving.state == {"key": "x" * 100}


def test_the_properties_hold_where_every_bin_goes_in_pieces(small_pieces: list[Piece]) -> None:
    """Under random schedules, where pieces overtake each other and wait for turns, and on processes."""
    for seed in range(120):
        run_case(seed)
    assert sum(piece.at > 3 for piece in small_pieces) > 1000, "bins did go in many pieces"
    assert {piece.head[0] for piece in small_pieces} == {0, 1, 2}
    for seed in range(3):
        run_on_processes(seed, 2)


def test_a_bin_that_arrives_in_pieces_is_not_there_before_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every moment of a migration a bin is in at most one store, and never in part."""
    monkeypatch.setattr("megaphone.router.routing.PIECE", 5)
    monkeypatch.setattr("megaphone.router.routing.PIECES", 40)
    keys = [f"key {number}" for number in range(200)]
    stores: dict[int, RowBins] = {}
    arrive, moments = RowBins.arrive, []

    def look(self: RowBins, piece: Piece) -> None:
        arrive(self, piece)
        holders = [store for store in stores.values() if 0 in store.numbers]
        assert len(holders) <= 1
        assert all(len(store.state(0)) == len(keys) for store in holders)
        moments.append(self in holders)

    monkeypatch.setattr(RowBins, "arrive", look)

    def count(time: int, records: list[Any], state: dict[Any, int], notificator: Any) -> Any:
        for key in records:
            state[key] = state.get(key, 0) + 1
        return [sum(state.values())]

    async def main(worker: dataflow.Worker) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            data, stream = scope.input()
            counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=1)
            stores[worker.index] = counts.handle.store.held
            probe = counts.inspect(lambda t, r: out.append(r)).probe()
        for time in range(4):
            data.send(keys if worker.index == 0 and time != 1 else [])
            if worker.index == 1 and time == 2:
                control.send([megaphone.Move(0, 1)])
            control.advance_to(time + 1)
            data.advance_to(time + 1)
            await probe.wait_passed(time)
        return out

    for seed in range(5):
        stores.clear()
        moments.clear()
        assert simulate(main, workers=2, seed=seed) == [[200], [400, 600]]
        assert len(moments) > 20 and moments == [False] * (len(moments) - 1) + [True], "it went in many pieces"
