"""Shared memory: blocks do not overlap, none is used again while anything refers to it, and all works without it."""

from __future__ import annotations

import mmap
import socket
from collections import deque
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import trio

import dataflow
from dataflow.columns import Columns
from dataflow.comm.arena import LARGE, Arena
from dataflow.comm.frames import SHARED, FrameEncoder, FrameError
from dataflow.comm.handshake import Keys
from dataflow.comm.link import Link, SharedArenas
from dataflow.comm.messages import AnyMessage, BlocksReturned, Data, Goodbye
from dataflow.comm.pipes import SocketPipe
from dataflow.comm.wire import encode_messages
from dataflow.lowlevel import ToWorker
from tests.comm.pressure import pass_on
from tests.engine.harness import failsafe

PAGE = mmap.PAGESIZE
KEYS = Keys(b"one way", b"and back")


@pytest.mark.parametrize("seed", range(10))
def test_blocks_keep_what_was_put_into_them_until_they_are_given_back(seed: int) -> None:
    chance = Random(seed)
    arena = Arena(64 * PAGE)
    lent: dict[int, bytes] = {}
    refused = 0
    for _ in range(500):
        if lent and chance.random() < 0.45:
            start = chance.choice(list(lent))
            assert bytes(arena.borrow(start, len(lent[start]), int)) == lent.pop(start)
            arena.give_back(start)
            continue
        data = chance.randbytes(chance.choice((1, PAGE, PAGE + 1, 10 * PAGE, 40 * PAGE)))
        cut = chance.randrange(len(data) + 1)
        place = arena.lend([data[:cut], memoryview(data)[cut:]], len(data))
        if place is None:
            refused += 1
        else:
            lent[place] = data
    assert refused  # it was put to the test
    for start in lent:
        arena.give_back(start)
    assert arena.lend([bytes(64 * PAGE)], 64 * PAGE) == 0


def test_the_first_place_that_is_large_enough_is_taken() -> None:
    arena = Arena(10 * PAGE)
    assert [arena.lend([], size * PAGE) for size in (1, 2, 1, 3)] == [0, PAGE, 3 * PAGE, 4 * PAGE]
    arena.give_back(PAGE)
    arena.give_back(0)
    assert arena.lend([], 4 * PAGE) is None
    assert [arena.lend([], size * PAGE) for size in (3, 3, 1)] == [0, 7 * PAGE, None]


def test_there_is_an_end_to_the_blocks_that_have_to_be_looked_at() -> None:
    arena = Arena(1000 * PAGE)
    starts = [arena.lend([b"x"], 1) for _ in range(300)]
    assert None not in starts[:256] and set(starts[256:]) == {None}


def test_a_block_that_was_not_lent_cannot_be_given_back() -> None:
    with pytest.raises(KeyError):
        Arena(PAGE).give_back(0)


@pytest.mark.parametrize(("start", "size"), [(0, PAGE + 1), (PAGE, 1), (2**64 - 1, 2)])
def test_only_what_is_there_can_be_borrowed(start: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"{size} bytes at {start} of a memory of {PAGE}"):
        Arena(PAGE).borrow(start, size, int)


@pytest.mark.parametrize("size", [0, 1, PAGE - 1])
def test_without_memory_nothing_is_lent(size: int) -> None:
    assert Arena(size).lend([b"x"], 1) is None


def test_a_system_that_gives_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert Arena(1 << 20).lend([b"x"], 1) is None


KEPT = {
    "a view": lambda body: body[10:20],
    "an array": lambda body: np.frombuffer(body, "u8"),
    "a part of an array": lambda body: np.frombuffer(body, "u8")[3:5].reshape(2, 1),
    "an Arrow buffer": lambda body: pa.py_buffer(body).slice(8),
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_a_block_is_given_back_when_nothing_refers_to_it(keep: Any) -> None:
    arena = Arena(PAGE)
    returned: list[int] = []
    body = arena.borrow(0, 800, returned.append)
    kept = keep(body)
    del body
    assert returned == []
    del kept
    assert returned == [0]


# ------------------------------------------------------------------------------------------------------- between links


class Pair:
    """Two links in one loop, with shared memory of that size on each side."""

    def __init__(self, size: int) -> None:
        one, two = socket.socketpair()
        arenas = Arena(size), Arena(size)
        self.arenas = arenas
        self.one = Link(SocketPipe(one), KEYS, 1, shared=SharedArenas(*arenas))
        self.two = Link(SocketPipe(two), Keys(KEYS.receiving, KEYS.sending), 0, shared=SharedArenas(*reversed(arenas)))
        self.sockets = (one, two)

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


def batch(number: int, rows: int = LARGE // 8) -> Data:
    return Data(0, 0, 0, number, Columns({"n": np.full(rows, number)}), 8 * rows)


def carry(sender: Link, receiver: Link, *messages: AnyMessage) -> list[AnyMessage]:
    """What arrives of messages that are sent at once."""
    for message in messages:
        sender.post(message)
    sender.flush()
    arrived: list[AnyMessage] = []
    while len(arrived) < len(messages):  # the kernel may not take all of a frame at once
        arrived += [message for message in receiver.read_now() if not isinstance(message, BlocksReturned)]
        sender.flush()
    return arrived


def test_memory_is_used_again_once_its_return_was_heard_of() -> None:
    pair = Pair(4 * LARGE)
    kept: deque[Any] = deque()
    for number in range(50):
        (arrived,) = carry(pair.one, pair.two, batch(number))
        assert isinstance(arrived, Data)
        kept.append(arrived)
        if len(kept) > 3:
            kept.popleft()
            carry(pair.two, pair.one, Goodbye(1))
        for message in kept:
            assert (message.batch["n"] == message.time).all()
    assert len(pair.arenas[0]._starts) == len(kept) == 3
    pair.close()


def test_what_does_not_fit_goes_through_the_socket() -> None:
    pair = Pair(2 * LARGE)
    kept = [carry(pair.one, pair.two, batch(number))[0] for number in range(5)]
    assert len(pair.arenas[0]._starts) == 2
    assert all((message.batch["n"] == number).all() for number, message in enumerate(kept))  # type: ignore[union-attr]
    pair.close()


def test_small_bodies_are_not_worth_it() -> None:
    pair = Pair(2 * LARGE)
    (arrived,) = carry(pair.one, pair.two, batch(1, LARGE // 8 - 2))
    assert isinstance(arrived, Data) and (arrived.batch["n"] == 1).all()
    assert pair.arenas[0]._starts == []
    pair.close()


def test_strings_travel_in_shared_memory_as_well() -> None:
    pair = Pair(8 * LARGE)
    words = pa.array(["grün", None, ""] * 20_000)
    (arrived,) = carry(pair.one, pair.two, Data(0, 0, 0, 0, Columns({"word": words}), 100))
    assert isinstance(arrived, Data) and arrived.batch["word"].equals(words)
    assert len(pair.arenas[0]._starts) == 1
    pair.close()


def forge(pair: Pair, *messages: AnyMessage, body: int = 0, at: int | None = None) -> None:
    """Worker 1 sends worker 0 a frame that it never should."""
    header, _ = encode_messages(messages)
    pair.sockets[1].send(FrameEncoder(KEYS.receiving).encode(header, body, at))


@pytest.mark.parametrize("block", [0, 7, -1, 2**63])
def test_memory_that_was_not_lent_cannot_be_given_back(block: int) -> None:
    pair = Pair(2 * LARGE)
    forge(pair, BlocksReturned(1, [block]))
    with pytest.raises(FrameError, match=r"worker 1 (gives back shared memory|sent a frame that makes no)"):
        pair.one.read_now()
    pair.close()


@pytest.mark.parametrize("at", [2 * LARGE, 2**64 - 1])
def test_a_body_where_there_is_none(at: int) -> None:
    pair = Pair(2 * LARGE)
    forge(pair, body=100, at=at)
    with pytest.raises(FrameError, match="worker 1 cannot be understood: frame 0 has its body where there is none"):
        pair.one.read_now()
    pair.close()


def test_a_link_without_shared_memory_knows_no_such_frames() -> None:
    one, two = socket.socketpair()
    frame = FrameEncoder(KEYS.receiving).encode(b"\x90", 100, 0)
    assert frame.startswith(SHARED)
    two.send(frame)
    with pytest.raises(FrameError, match="these are not frames"):
        Link(SocketPipe(one), KEYS, 1).read_now()
    one.close()
    two.close()


# ------------------------------------------------------------------------------------------------------------ programs


@pytest.mark.parametrize("limit", [1 << 14, 1 << 20, 1 << 26], ids=["none", "too little", "enough"])
def test_what_a_program_keeps_stays_as_it_was(limit: int) -> None:
    # Worker 1 keeps every other batch for ever, and the last few of the rest for a while.
    async def main(worker: dataflow.Worker) -> list[int]:
        kept: list[Any] = []
        recent: deque[Any] = deque(maxlen=3)
        wrong = 0

        def keep(time: int, batch: Columns) -> None:
            nonlocal wrong
            (kept if time % 2 else recent).append((time, batch["n"]))
            wrong += sum(int((column != time).sum()) for time, column in recent)

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.unary("take", lambda _: pass_on, pact=ToWorker(1)).inspect_batch(keep).probe()
        for epoch in range(40 if worker.index == 0 else 0):
            await handle.room()
            handle.send(Columns({"n": np.full(1 << 14, epoch)}))
            handle.advance_to(epoch + 1)
            await trio.lowlevel.checkpoint()
        handle.close()
        await probe.wait_done()
        return [wrong, len(kept), sum(int((column != time).sum()) for time, column in kept)]

    with failsafe(15.0):
        assert dataflow.execute(main, workers=2, limit=limit) == [[0, 0, 0], [0, 20, 0]]
