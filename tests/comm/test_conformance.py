"""What every transport promises: the same tests on all of them."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
import trio

from dataflow.columns import Columns
from dataflow.comm.messages import (
    AnyMessage,
    Consumed,
    Data,
    Dropped,
    Finished,
    Hello,
    Pressure,
    Progress,
    Taken,
)
from dataflow.progress.broadcast import ProgressBatch
from tests.comm.rig import LINKED, RIGS, End, Rig
from tests.comm.values import BATCHES, Bid, same

DTYPES = ("i1", "u1", "i2", "<u4", ">i4", "i8", "u8", "f2", "f4", ">f8", "c16", "?", "S3", "U5", "M8[ms]", "m8[D]", "g")


def data(sender: int, batch: Any, time: Any = 0) -> Data:
    return Data(sender, 1, 2, time, batch, len(batch))


def every_kind(sender: int) -> list[AnyMessage]:
    """One of each kind of message that a worker may send another (but goodbye, which belongs to the link)."""
    changes = (((0, 5), +1), ((3, (5, 1)), -2), ((2, ("a", 2**70)), 3))
    return [
        Hello(sender, 0, "näme", ("input 0", "exchange 1")),
        Progress(sender, 0, ProgressBatch(sender, 7, changes)),
        Progress(sender, 0, ProgressBatch(sender, 8, ())),
        data(sender, [(1, "x"), (2, "y")], time=(3, 4)),
        Taken(sender, 1, 2, 2**40),
        Dropped(sender, 2**31),
        Finished(sender, 3),
        Consumed(sender, 2**40),
        Pressure(sender, True),
        Pressure(sender, False),
    ]


def random_message(chance: Random, sender: int, number: int) -> AnyMessage:
    kind = chance.randrange(5)
    if kind == 0:
        return Progress(sender, number, ProgressBatch(sender, number, (((1, number), 1),)))
    if kind == 1:
        return data(sender, [(number, i) for i in range(chance.choice((1, 10, 1000)))])
    if kind == 2:
        return data(sender, [b"x" * chance.choice((1, 100, 100_000))], time=number)
    if kind == 3:
        return Consumed(sender, number)
    return Finished(sender, number)


def test_every_message_arrives_once_and_in_its_senders_order(rig: Rig) -> None:
    count = 200

    def sent(sender: int, receiver: int) -> list[AnyMessage]:
        chance = Random(f"{sender} {receiver}")
        return [random_message(chance, sender, number) for number in range(count)]

    async def script(end: End) -> None:
        chance = Random(end.index)
        messages = {peer: iter(sent(end.index, peer)) for peer in end.others}
        for _ in range(count):
            for peer in end.others:
                end.send(peer, next(messages[peer]), flush=chance.random() < 0.3)
            if chance.random() < 0.1:
                await trio.lowlevel.checkpoint()
        end.transport.flush()
        await end.receive(count * len(end.others))
        for peer in end.others:
            assert end.of(peer) == sent(peer, end.index)

    rig(script, 3)


def changes_of(messages: list[AnyMessage]) -> list[Any]:
    """Of all progress, one by one: batches that come together may be told as one."""
    return [(m.dataflow, *change) for m in messages if isinstance(m, Progress) for change in m.batch.changes]


def test_what_is_said_to_all_comes_once_in_order_and_before_what_is_said_to_one_afterwards(rig: Rig) -> None:
    count = 150

    def said(sender: int) -> list[Progress]:
        chance = Random(f"{sender} says")
        batches = []
        for number in range(count):
            time = number if chance.random() < 0.8 else (number, chance.choice(("pair", "p" * 3000)))
            changes = tuple(((chance.randrange(3), time), diff) for diff in range(1, chance.choice((2, 4, 60))))
            batches.append(Progress(sender, chance.randrange(2), ProgressBatch(sender, number, changes)))
        return batches

    async def script(end: End) -> None:
        chance = Random(end.index)
        told = 0
        for message in said(end.index):
            end.broadcast(message)
            told += len(message.batch.changes)
            if chance.random() < 0.3:
                end.send(chance.choice(end.others), Consumed(end.index, told))
            if chance.random() < 0.1:
                await trio.lowlevel.checkpoint()
        end.send(end.others[0], Consumed(end.index, told))
        end.send(end.others[1], Consumed(end.index, told))
        heard = {peer: changes_of(list(said(peer))) for peer in end.others}
        while any(changes_of(end.of(peer)) != heard[peer] for peer in end.others):
            await end.receive(len(end.inbox) + 1)
        for peer in end.others:
            before = 0
            for message in end.of(peer):
                before += len(changes_of([message]))
                assert not isinstance(message, Consumed) or message.size <= before

    rig(script, 3)


def test_every_kind_of_message(rig: Rig) -> None:
    async def script(end: End) -> None:
        (peer,) = end.others
        for message in every_kind(end.index):
            end.send(peer, message)
        await end.receive(len(every_kind(peer)))
        assert end.of(peer) == every_kind(peer)
        for got, expected in zip(end.of(peer), every_kind(peer), strict=True):
            assert type(got) is type(expected)
            if isinstance(got, Progress):
                assert same(got.batch.changes, expected.batch.changes)

    rig(script, 2)


def test_rows_of_every_plain_type_keep_value_and_type(rig: Rig) -> None:
    async def script(end: End) -> None:
        (peer,) = end.others
        if end.index == 0:
            end.send(peer, *(data(0, batch, time=number) for number, batch in enumerate(BATCHES)))
            return
        for message, expected in zip(await end.receive(len(BATCHES)), BATCHES, strict=True):
            assert same(message.batch, expected), f"{expected!r} arrived as {message.batch!r}"

    rig(script, 2)


def columns_of_every_dtype(length: int) -> Columns:
    return Columns({dtype: np.arange(length).astype(dtype) for dtype in DTYPES})


@pytest.mark.parametrize("length", [1, 7, 1000])
def test_columns_keep_their_dtypes(rig: Rig, length: int) -> None:
    async def script(end: End) -> None:
        (peer,) = end.others
        columns = columns_of_every_dtype(length)
        strided = Columns({"even": np.arange(20)[::2], "back": np.arange(10)[::-1], "one": np.broadcast_to(5, 10)})
        end.send(peer, data(end.index, columns), data(end.index, strided))
        first, second = await end.receive(2)
        for expected, got in ((columns, first.batch), (strided, second.batch)):
            assert isinstance(got, Columns) and got.names == expected.names
            for name in expected.names:
                assert same(np.ascontiguousarray(got[name]), np.ascontiguousarray(expected[name])), name

    rig(script, 2)


def test_columns_of_strings(rig: Rig) -> None:
    import pyarrow as pa

    texts = ["", "grün", None, "\U0001f600", "x" * 70_000, "\0"]
    batches = [
        Columns({"n": range(6), "text": texts, "large": pa.array(texts, pa.large_string())}),
        Columns({"text": texts * 50}).slice(7, 40),
        Columns({"bytes": [b"\xff", None, b""], "nothing": pa.array([None] * 3, pa.string())}),
        Columns(
            {"dictionary": pa.array(["a", "b", "a"]).dictionary_encode(), "view": pa.array(["x"] * 3, pa.string_view())}
        ),
    ]

    async def script(end: End) -> None:
        (peer,) = end.others
        end.send(peer, *(data(end.index, batch) for batch in batches))
        for message, expected in zip(await end.receive(len(batches)), batches, strict=True):
            assert message.batch == expected and message.batch.rows() == expected.rows()
            assert [str(c.type) for c in message.batch.columns.values() if not isinstance(c, np.ndarray)] == [
                str(c.type) for c in expected.columns.values() if not isinstance(c, np.ndarray)
            ]

    rig(script, 2)


def test_columns_of_one_frame_are_views_of_one_buffer(linked: Rig) -> None:
    size = 1 << 20

    async def script(end: End) -> None:
        (peer,) = end.others
        if end.index == 0:
            arrays = {str(n): np.full(size // 8 + n, n, np.int64) for n in range(4)}
            end.send(peer, *(data(0, Columns({name: array})) for name, array in arrays.items()))
            return
        arrays = [column for message in await end.receive(4) for column in message.batch.columns.values()]
        assert [int(array[-1]) for array in arrays] == [0, 1, 2, 3]
        assert not any(array.flags.owndata for array in arrays)
        assert all(array.flags.aligned and array.ctypes.data % 16 == 0 for array in arrays)

    linked(script, 2)


def test_columns_of_one_batch_lie_side_by_side(linked: Rig) -> None:
    async def script(end: End) -> None:
        (peer,) = end.others
        numbers = np.arange(10_001)
        batch = Columns({"a": numbers.astype(np.int8), "b": numbers, "c": np.ones(10_001)})
        if end.index == 0:
            end.send(peer, data(0, batch))
            return
        (message,) = await end.receive(1)
        a, b, c = message.batch.columns.values()
        assert b.ctypes.data - a.ctypes.data == 10_016  # padded to 16 bytes
        assert c.ctypes.data - b.ctypes.data == 80_016
        assert np.array_equal(b, np.arange(10_001))

    linked(script, 2)


def test_in_one_process_a_batch_is_the_same_object() -> None:
    rows = [object()]

    async def script(end: End) -> None:
        if end.index == 0:
            end.send(1, data(0, rows))
        else:
            (message,) = await end.receive(1)
            assert message.batch is rows

    RIGS["in one process"](script, 2)


def test_large_batches_in_both_directions_at_once(rig: Rig) -> None:
    async def script(end: End) -> None:
        (peer,) = end.others
        columns = Columns({"x": np.arange(3 << 20) + end.index, "y": np.ones(1 << 20, np.float64).repeat(3)})  # 48 MB
        rows = [bytes([end.index]) * (2 << 20) for _ in range(4)]
        end.send(peer, data(end.index, columns), data(end.index, rows), Consumed(end.index, 1))
        first, second, third = await end.receive(3)
        assert first.batch["x"][0] == peer and first.batch["x"][-1] == (3 << 20) - 1 + peer
        assert first.batch["y"].sum() == 3 << 20
        assert [len(row) for row in second.batch] == [2 << 20] * 4 and second.batch[3][-1] == peer
        assert third == Consumed(peer, 1)

    rig(script, 2)


def test_a_large_header_arrives_as_well(rig: Rig) -> None:
    # Progress travels in headers: more than the decoder's first buffer holds, in one message and in many.
    changes = tuple(((n, n), 1) for n in range(50_000))

    async def script(end: End) -> None:
        (peer,) = end.others
        messages = [Progress(end.index, 0, ProgressBatch(end.index, n, changes[n:])) for n in range(3)]
        end.send(peer, Consumed(end.index, 1), *messages)
        got = await end.receive(4)
        assert [message.batch.changes for message in got[1:]] == [changes, changes[1:], changes[2:]]

    rig(script, 2)


@pytest.mark.parametrize("name", ["socket pairs", "TCP", "TLS between processes"])
def test_small_messages_of_one_turn_share_frames(name: str) -> None:
    count = 5000

    async def script(end: End) -> None:
        (peer,) = end.others
        if end.index == 0:
            for number in range(count):
                end.send(peer, Consumed(0, number), flush=False)
            end.transport.flush()
        else:
            await end.receive(count)
            assert end.inbox == [Consumed(0, number) for number in range(count)]
            assert end.turns < count / 100  # one frame, in as many pieces as the kernel makes of it

    RIGS[name](script, 2)


def test_nothing_is_sent_before_flush(linked: Rig) -> None:
    async def script(end: End) -> None:
        (peer,) = end.others
        if end.index == 0:
            end.send(peer, Consumed(0, 1), flush=False)
            end.send(peer, data(0, ["x"]), flush=False)
            end.send(peer, Consumed(0, 2))
            await end.receive(1)  # or our goodbye, a second turn, might come before the other has looked
        else:
            assert len(await end.receive(1)) == 3
            assert end.turns == 1
            end.send(peer, Consumed(1, 1))

    linked(script, 2)


def test_a_message_that_follows_goodbye_does_not_hide_it(linked: Rig) -> None:
    # A worker acknowledges data that arrives after it has said goodbye (for a dataflow that was dropped): the
    # acknowledgement may share a frame, or a read, with the goodbye.
    async def script(end: End) -> None:
        (peer,) = end.others
        say_goodbye = end.transport.say_goodbye

        async def and_more() -> None:
            original = end.transport.flush

            def flush() -> None:
                end.transport.send(peer, Consumed(end.index, 1))
                original()

            end.transport.flush = flush
            await say_goodbye()

        end.transport.say_goodbye = and_more

    linked(script, 2)


class Local:
    """Neither a dataclass nor anything else that is plain."""


UNSENDABLE = [lambda: None, object(), {"k": [1, open]}, (1, range(3)), np.array([object()]), "\ud800", Local()]


@pytest.mark.parametrize("row", UNSENDABLE, ids=lambda row: type(row).__name__)
@pytest.mark.parametrize("rows", [1, 3])
def test_what_cannot_be_encoded_is_named(row: Any, rows: int) -> None:
    async def script(end: End) -> None:
        (peer,) = end.others
        end.send(peer, data(0, [Bid(1, 1.0)] * (rows - 1) + [row]))

    with pytest.raises(BaseExceptionGroup) as caught:
        LINKED["socket pairs"](script, 2)
    told = {str(error) for error in _leaves(caught.value) if isinstance(error, TypeError)}
    assert len(told) == 1 and "cannot be sent" in told.pop()


def test_columns_of_records_are_refused() -> None:
    with pytest.raises(TypeError, match="a column holds numbers"):
        Columns({"r": np.zeros(2, [("a", "i4")])})


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
