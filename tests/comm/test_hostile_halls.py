"""A worker of the same host that writes what it likes into the memory that all share. Another must go on as if nothing
had happened, or wait for what will never come, or end with an error of the engine's that names a worker; nothing else.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from dataflow.comm.board import WORDS
from dataflow.comm.frames import QUICK, FrameError
from dataflow.comm.hall import ENTRY, WORD, Hall, HallPlan, make_hall
from dataflow.comm.link import Link
from dataflow.comm.linked import Linked
from dataflow.comm.messages import Consumed
from dataflow.comm.ring import RingPipe
from dataflow.comm.wire import encode_messages
from dataflow.run.pump import Pump
from tests.comm.hostile import HONEST, LIAR, LONG, Outcome, _one_order, judge, program, random_arguments
from tests.engine.harness import failsafe

PLAN = HallPlan(2, board=1 << 12, ring=1 << 12)
PLAIN = ("integers", "rows", 2, False)
Lie = Callable[[Hall], None]  # what the liar writes, as it sees the hall


def meet(lie: Lie, at: int, arguments: tuple[Any, ...] = PLAIN) -> Outcome:
    """Runs the program on an honest worker and on a liar, who lies in the turn `at`."""
    outcome = Outcome()
    with _one_order():
        trio.run(_meet, lie, at, arguments, outcome, clock=trio.testing.MockClock(autojump_threshold=0))
    return outcome


async def _meet(lie: Lie, at: int, arguments: tuple[Any, ...], outcome: Outcome) -> None:
    memory = make_hall(PLAN)
    assert memory is not None
    sockets = socket.socketpair()
    halls = [Hall(PLAN, memory, index) for index in (HONEST, LIAR)]
    pumps = [Pump(index, 2, warn_after=None) for index in (HONEST, LIAR)]
    for pump, hall, sock in zip(pumps, halls, sockets, strict=True):
        peer = 1 - pump.index
        pump.transport = Linked(pump, {peer: Link(RingPipe(hall, peer, sock, peer), None, peer)})
    _lie_in_turn(pumps[LIAR], halls[LIAR], lie, at, outcome)

    async def be_a_liar() -> None:
        try:
            await _work(pumps[LIAR], arguments)
        except* Exception:  # it has confused itself, or is hung up on
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_a_liar)
        try:
            with trio.move_on_after(LONG):
                outcome.result = await _work(pumps[HONEST], arguments)
        except BaseException as error:
            outcome.error = error
        nursery.cancel_scope.cancel()


def _lie_in_turn(pump: Pump, hall: Hall, lie: Lie, at: int, outcome: Outcome) -> None:
    turn, turns = pump.turn, 0

    def lying(collected: bool = False) -> None:
        nonlocal turns
        turn(collected)
        turns += 1
        if turns > at and not outcome.told:
            outcome.told = True
            lie(hall)
            _ring_bell(pump)

    pump.turn = lying  # type: ignore[method-assign]


def _ring_bell(pump: Pump) -> None:
    transport: Any = pump.transport
    for link in transport._links.values():
        link.pipe.ring_bell()


async def _work(pump: Pump, arguments: tuple[Any, ...]) -> int:
    transport: Any = pump.transport
    main: Any = program
    try:
        async with pump.running() as nursery:
            transport.start(nursery)
            nursery.start_soon(pump.run)
            result = int(await pump.run_main(main, *arguments))
            await transport.say_goodbye()
    finally:
        with trio.CancelScope(shield=True):
            await transport.close()
    return result


# ------------------------------------------------------------------------------------------------------------ by name


def on_board(*words: int, body: bytes = b"") -> Lie:
    """Entries after what the liar has written on its board."""
    data = struct.pack(f"={len(words)}q", *words) + body
    data += bytes(-len(data) % ENTRY)

    def lie(hall: Hall) -> None:
        board, head = hall.board(hall.slot).cast("B"), hall.counts[hall.slot]
        for number in range(len(data) // ENTRY):
            start = (head + number) * ENTRY % len(board)
            board[start : start + ENTRY] = data[number * ENTRY : (number + 1) * ENTRY]
        hall.counts[hall.slot] = head + len(data) // ENTRY

    return lie


def letter(message: Any) -> Lie:
    header, _ = encode_messages([message])
    return on_board(-1, len(header), 0, len(header), body=header)


def head_of_board(by: int) -> Lie:
    def lie(hall: Hall) -> None:
        hall.counts[hall.slot] += by

    return lie


def head_of_ring(by: int) -> Lie:
    def lie(hall: Hall) -> None:
        hall.heads[HONEST * hall.slots + LIAR] += by

    return lie


def in_ring(data: bytes) -> Lie:
    def lie(hall: Hall) -> None:
        ring, place = hall.ring(LIAR, HONEST), HONEST * hall.slots + LIAR
        for byte in data:
            ring[hall.heads[place] % len(ring)] = byte
            hall.heads[place] += 1

    return lie


def quick(size: int, number: int) -> bytes:
    return struct.pack("<4sIQIIqQ", QUICK, size, number, 0, 1, 0, 0) + bytes(16)


FAR = 1 << 60
LIES: dict[str, tuple[Lie, str]] = {
    "a board that goes back": (head_of_board(-FAR), "announces entry"),
    "a board that is longer than it is": (head_of_board(FAR), "announces entry"),
    "a ring that goes back": (head_of_ring(-FAR), "of its ring after"),
    "a ring that is longer than it is": (head_of_ring(FAR), "of its ring after"),
    "bytes that are no frame": (in_ring(b"x" * 64), "cannot be understood"),
    "rows with another number": (in_ring(quick(16, 77)), "garbled"),
    "more rows than may be": (in_ring(quick(1 << 31, 0)), "garbled"),
    "an entry of no kind": (on_board(-2, 0, 0, 0), "makes no sense"),
    "a letter without end": (on_board(-1, FAR, 0, 8, body=bytes(8)), "makes no sense"),
    "a letter from its middle": (on_board(-1, 64, 32, 8, body=bytes(8)), "makes no sense"),
    "a letter that is longer than it says": (on_board(-1, 8, 0, 16, body=bytes(16)), "makes no sense"),
    "a letter that is cut": (on_board(-1, 640, 0, 320), "does not fit its length"),
    "a letter of nothing": (on_board(-1, 8, 0, 8, body=bytes(8)), "no sense"),
    "a letter that belongs into a ring": (letter(Consumed(LIAR, 1)), "has written a Consumed on its board"),
    "progress at no location": (on_board(0, 1000, 0, 1), "progress at location 1000"),
    "progress at location -1": (on_board(0, -1, 0, 1), "progress at location -1"),
    "progress before time began": (on_board(0, 0, -1, 1), "sent -1 for"),
    "progress of a dataflow to come": (on_board(FAR, 0, 0, 1), "may not say this now"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_found_out(name: str) -> None:
    lie, said = LIES[name]
    with failsafe(60):
        assert said in judge(meet(lie, at=2))


def test_nothing_is_found_where_there_is_no_lie() -> None:
    for seed in range(10):
        assert judge(meet(lambda hall: None, at=2, arguments=random_arguments(Random(seed)))) == "done"


def test_a_reader_that_says_it_has_read_what_was_never_written() -> None:
    def lie(hall: Hall) -> None:
        hall.cursors[HONEST * hall.slots + LIAR] = FAR
        hall.tails[HONEST * hall.slots + LIAR] = FAR

    with failsafe(60):
        assert judge(meet(lie, at=2)) in ("done", "waiting")


# ----------------------------------------------------------------------------------------------------------- at random


def scribble(chance: Random) -> Lie:
    """Writes somewhere, in content or in the tables: a word, or a few bytes."""

    def lie(hall: Hall) -> None:
        words = hall.memory[: PLAN.words * WORD].cast("q")
        for _ in range(chance.randrange(1, 4)):
            kind = chance.random()
            if kind < 0.5:
                place = chance.randrange(3 * hall.slots + 4 * hall.slots**2)
                words[place] = chance.choice((0, 1, -1, words[place] + 1, words[place] - 1, FAR, words[place] + ENTRY))
            elif kind < 0.8:
                board = hall.board(LIAR)
                head = hall.counts[LIAR] * WORDS
                for word in range(head, head + WORDS):
                    board[word % len(board)] = chance.choice((0, 1, -1, 2, chance.randrange(-FAR, FAR)))
                hall.counts[LIAR] += 1
            else:
                ring = hall.ring(LIAR, HONEST)
                ring[chance.randrange(len(ring))] = chance.randrange(256)

    return lie


def test_random_lies() -> None:
    seen: Counter[str] = Counter()
    with failsafe(120):
        for seed in range(150):
            chance = Random(seed)
            try:
                outcome = meet(scribble(chance), chance.randrange(8), random_arguments(chance))
                seen[(judge(outcome) if outcome.told else "not told")[:20]] += 1
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise
    assert len(seen) > 4, seen  # or the lies are not about anything


def test_a_lie_on_a_ring_names_the_peer() -> None:
    with pytest.raises(FrameError, match="worker 7 cannot be understood"):
        Link(None, None, 7).decode(b"?" * 64)  # type: ignore[arg-type]
