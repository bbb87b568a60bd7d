"""A battery of hostile frames: a peer that has the key, runs the same program, and at some moment lies.

`run_case(seed)` joins two real workers by a real link. One of them is a liar: whatever its worker says is encoded as
usual, then some frames are changed, as structures, as numbers or as bytes, or get a forged message, and are sealed
with the right key. The honest worker must go on as if nothing had happened, or end with an error of the engine's that
names the liar; nothing else, however absurd the lie was.

Programs take whatever records arrive: what a peer's records do to a program's own functions is the program's affair.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import trio
import trio.testing

import dataflow
from dataflow.columns import Columns
from dataflow.comm.arena import LARGE, Arena
from dataflow.comm.handshake import Keys
from dataflow.comm.link import Link, SharedArenas
from dataflow.comm.linked import Linked
from dataflow.comm.pipes import SocketPipe
from dataflow.comm.wire import encode_messages
from dataflow.lowlevel import ToWorker
from dataflow.run.exceptions import leaves
from dataflow.run.pump import Pump
from tests.comm import fuzz
from tests.progress.pairs import Pair

HONEST, LIAR = 0, 1
LONG = 1000.0  # virtual seconds: whoever waits longer waits for a peer that will never say more
EPOCHS = 3

Tree = Any
Lie = Callable[[Tree, list[bytes]], tuple[Tree, list[bytes]]]
"""(header, buffers): the same, changed."""


# ------------------------------------------------------------------------------------------------------------ programs


def _take(_: Any) -> Any:
    """An operator that takes what arrives and looks at nothing but its length."""

    def step(input: Any, output: Any) -> None:
        for message, batch in input:
            output.give(message, batch if len(batch) else [0])

    return step


def _times(kind: str) -> tuple[Any, Callable[[int], Any]]:
    if kind == "pairs":
        return dataflow.Product(int, int), lambda epoch: (epoch, epoch)
    if kind == "points":
        return Pair, lambda epoch: Pair(epoch, epoch)
    return int, lambda epoch: epoch


def _records(kind: str, size: int, epoch: int) -> Any:
    if kind == "columns":
        return Columns({"n": np.arange(size), "word": ["x", "grün"] * (size // 2)})
    return [(epoch, n, "x") for n in range(size)]


async def program(worker: dataflow.Worker, times: str, records: str, size: int, nested: bool) -> int:
    """A few epochs through an exchange, a loop or an asynchronous sink; how many batches were written here."""
    written = 0

    async def write(time: Any, batch: Any) -> None:
        nonlocal written
        written += 1
        await trio.lowlevel.checkpoint()

    domain, time_of = _times(times)
    for number in range(2):
        with worker.dataflow(f"number {number}", time=domain) as scope:
            handle, stream = scope.input()
            taken = stream.unary("take", _take, pact=ToWorker(number))
            if nested:
                with scope.nested() as inner:
                    taken = taken.enter(inner).unary("inside", _take, pact=ToWorker(1 - number)).leave()
            probe = taken.sink(write).probe()
        for epoch in range(EPOCHS):
            handle.send(_records(records, size, epoch))
            handle.advance_to(time_of(epoch + 1))
            await probe.wait_passed(time_of(epoch))
    return written


# ------------------------------------------------------------------------------------------------------------ the liar


class LyingLink(Link):
    """A link of somebody who knows the key: `lie` has the last word about one frame."""

    lie: Lie | None = None
    at = 0  # the number of the frame to lie in
    after: bytes | None = None  # bytes to send after it, without a seal
    shared_at: int | None = None  # where in shared memory the body is claimed to lie
    _frames = 0
    told = False

    def _encode_frame(self) -> None:
        messages = [self._queue.popleft() for _ in range(len(self._queue))]
        header, buffers = encode_messages(messages)
        pieces = [bytes(buffer) for buffer in buffers]
        if self._frames == self.at and self.lie is not None:
            tree, pieces = self.lie(fuzz.open_tree(header), pieces)
            header = tree if isinstance(tree, bytes) else fuzz.close_tree(tree)
            self.told = True
        body = b"".join(pieces)
        claimed = self.shared_at if self._frames == self.at else None
        front = self._encoder.encode(header, len(body), claimed)
        self._unsent.append(front + (body if claimed is None else b""))
        if self._frames == self.at and self.after is not None:
            self._unsent.append(self.after)
        self._frame_size = -1
        self._frames += 1


def forge(message: Tree, *buffers: bytes, replace: bool = False) -> Lie:
    """Adds a message and its buffers to a frame, or sends it in the place of all others."""

    def lie(tree: Tree, pieces: list[bytes]) -> tuple[Tree, list[bytes]]:
        sizes, bodies = tree
        if replace or buffers:
            sizes, bodies, pieces = [], [], []
        padded = [buffer + bytes(-len(buffer) % 16) for buffer in buffers]
        return [[*sizes, *map(len, buffers)], [*bodies, message]], [*pieces, *padded]

    return lie


# ------------------------------------------------------------------------------------------------------------- meeting


class Outcome:
    """What came of a meeting."""

    result: int | None = None
    error: BaseException | None = None
    told = False  # whether the lie was told


def meet(prepare: Callable[[LyingLink], None], arguments: tuple[Any, ...], limit: int = 1 << 20) -> Outcome:
    """Runs the program on an honest worker and on a liar, until the honest one is done or has failed, or waits in
    vain."""
    outcome = Outcome()
    with _one_order():
        trio.run(_meet, prepare, arguments, limit, outcome, clock=trio.testing.MockClock(autojump_threshold=0))
    return outcome


@contextmanager
def _one_order() -> Iterator[None]:
    """Has trio choose between tasks in the same way each time (see dataflow.testing), so that a seed is a case."""
    scheduling: Any = trio._core._run
    chance, flag = scheduling._r, scheduling._ALLOW_DETERMINISTIC_SCHEDULING
    state = chance.getstate()
    chance.seed(0)
    scheduling._ALLOW_DETERMINISTIC_SCHEDULING = True
    try:
        yield
    finally:
        chance.setstate(state)
        scheduling._ALLOW_DETERMINISTIC_SCHEDULING = flag


async def _meet(prepare: Callable[[LyingLink], None], arguments: tuple[Any, ...], limit: int, outcome: Outcome) -> None:
    ends = socket.socketpair()
    arenas = [Arena(4 * LARGE), Arena(4 * LARGE)]
    keys = (Keys(b"a" * 24, b"b" * 24), Keys(b"b" * 24, b"a" * 24))
    honest = Link(SocketPipe(ends[0]), keys[0], LIAR, shared=SharedArenas(arenas[0], arenas[1]))
    liar = LyingLink(SocketPipe(ends[1]), keys[1], HONEST, shared=SharedArenas(arenas[1], arenas[0]))
    prepare(liar)

    async def be_honest() -> None:
        try:
            with trio.move_on_after(LONG):
                outcome.result = await _work(HONEST, honest, arguments, limit)
        except BaseException as error:
            outcome.error = error

    async def be_a_liar() -> None:
        try:
            await _work(LIAR, liar, arguments, limit)
        except* Exception:  # it has confused itself, or is hung up on
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_a_liar)
        await be_honest()
        nursery.cancel_scope.cancel()
    outcome.told = liar.told


async def _work(index: int, link: Link, arguments: tuple[Any, ...], limit: int) -> int:
    """What a worker's process does (see launch.child), for one of two."""
    pump = Pump(index, 2, limit=limit)
    transport = Linked(pump, {link.peer: link})
    pump.transport = transport
    main: Callable[..., Awaitable[Any]] = program
    try:
        async with pump.running() as nursery:
            transport.start(nursery)
            nursery.start_soon(pump.run)
            result = int(await pump.run_main(main, *arguments))
            await transport.say_goodbye()
    finally:
        await transport.close()
    return result


def judge(outcome: Outcome) -> str:
    """How the honest worker ended: 'done', 'waiting', or what its errors say. AssertionError if that may not be."""
    if outcome.error is None:
        return "waiting" if outcome.result is None else "done"
    told = []
    for error in leaves(outcome.error):
        text = "\n".join([str(error), *getattr(error, "__notes__", ())])
        if not isinstance(error, dataflow.DataflowError):
            raise AssertionError(f"not an error of the engine's: {error!r}") from error
        if f"worker {LIAR}" not in text:
            raise AssertionError(f"the peer is not named: {error!r}") from error
        if any(not (c.isprintable() or c in "\n\t") for c in text) or len(text) > 10_000:
            raise AssertionError(f"text of a peer's that is not fit to print: {text[:200]!r}") from error
        told.append(text)
    return "\n".join(told)


# -------------------------------------------------------------------------------------------------------- random lies


def run_case(seed: int) -> None:
    """One meeting with a random lie."""
    chance = Random(seed)
    try:
        judge(meet(lambda link: _prepare(chance, link), random_arguments(chance)))
    except BaseException as error:
        error.add_note(f"to see it again: tests.comm.hostile.run_case({seed})")
        raise


def random_arguments(chance: Random) -> tuple[Any, ...]:
    """Of the program: kind of times, kind of records, how many, whether there is a nested scope."""
    times = chance.choice(("integers", "integers", "pairs", "points"))
    records, sizes = chance.choice((("rows", (2, 10)), ("columns", (2, 10, LARGE // 8))))
    return times, records, chance.choice(sizes), chance.random() < 0.4


def _prepare(chance: Random, link: LyingLink) -> None:
    link.at = chance.randrange(10)
    link.lie = chance.choice(KINDS)(chance)
    if chance.random() < 0.05:
        link.after = chance.randbytes(chance.choice((1, 40, 5000)))
    if chance.random() < 0.05:
        link.shared_at = chance.choice((0, 1, 4096, 3 * LARGE, 4 * LARGE, 2**63, 2**64 - 1))


def _change_structure(chance: Random) -> Lie:
    def lie(tree: Tree, pieces: list[bytes]) -> tuple[Tree, list[bytes]]:
        for _ in range(chance.choice((1, 1, 3))):
            tree = fuzz.change(chance, tree)
        return tree, pieces

    return lie


def _change_number(chance: Random) -> Lie:
    """One integer of one message, however deep, becomes another."""

    def lie(tree: Tree, pieces: list[bytes]) -> tuple[Tree, list[bytes]]:
        if isinstance(tree, list) and len(tree) == 2:
            tree = [tree[0], _with_another_number(chance, tree[1])]
        return tree, pieces

    return lie


NUMBERS = (-1, -2, 0, 1, 2, 3, 5, 77, 2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 1.0, True, None, 0.5, "1")


def _with_another_number(chance: Random, tree: Tree) -> Tree:
    if isinstance(tree, list) and tree:
        at = chance.randrange(len(tree))
        return [*tree[:at], _with_another_number(chance, tree[at]), *tree[at + 1 :]]
    if isinstance(tree, fuzz.Extension):
        return fuzz.Extension(tree.code, _with_another_number(chance, tree.inside))
    return chance.choice(NUMBERS)


def _repeat_or_leave_out(chance: Random) -> Lie:
    def lie(tree: Tree, pieces: list[bytes]) -> tuple[Tree, list[bytes]]:
        sizes, bodies = tree
        if bodies:
            at = chance.randrange(len(bodies))
            kind = chance.randrange(3)
            if kind == 0:
                bodies = bodies[:at] + bodies[at + 1 :]
            elif kind == 1:
                bodies = bodies[:at] + [bodies[at]] * chance.choice((2, 3, 1000)) + bodies[at + 1 :]
            else:
                bodies = chance.sample(bodies, len(bodies))
        return [sizes, bodies], pieces

    return lie


def _damage_bytes(chance: Random) -> Lie:
    def lie(tree: Tree, pieces: list[bytes]) -> tuple[Tree, list[bytes]]:
        body = b"".join(pieces)
        if body and chance.random() < 0.7:
            return tree, [fuzz.damage(chance, body)]
        return fuzz.damage(chance, fuzz.close_tree(tree)), pieces

    return lie


def _forge_any(chance: Random) -> Lie:
    """A message of any kind with any numbers."""
    fields = [chance.choice((*NUMBERS, 0, 0, 0, 1, [], [0], [0, 1], fuzz.random_value(chance))) for _ in range(5)]
    return forge([chance.randrange(11), *fields[: chance.randrange(6)]])


KINDS = (_change_structure, _change_number, _change_number, _repeat_or_leave_out, _damage_bytes, _forge_any)
