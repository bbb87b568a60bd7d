"""Messages as frames, and back. Pure.

A frame carries any number of messages: its header is a list of them, and the buffers of their data follow in its
body, each at a multiple of 16 bytes so that arrays can be used where they lie. Rows are packed into one buffer;
columns are their arrays' own memory, neither copied when they are sent nor when they are received.

Every field is checked here, as far as that is possible without knowing a dataflow: kinds of values, ranges of numbers,
and that each buffer is used once and in order (or one buffer, named by each of a million messages, would be a million
batches). What a peer may say when is for `conversation`; which channels, locations and times there are, for the
dataflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dataflow.channels.pact import Batch
from dataflow.columns import Columns
from dataflow.comm import codec
from dataflow.comm.columns import decode_columns, encode_columns
from dataflow.comm.flow import ON_ITS_WAY
from dataflow.comm.frames import Frame, FrameError, QuickFrame
from dataflow.comm.messages import (
    AnyMessage,
    BlocksReturned,
    Consumed,
    Data,
    Dropped,
    Finished,
    Goodbye,
    Hello,
    Membership,
    Pressure,
    Progress,
    Taken,
)
from dataflow.comm.rows import decode_rows, encode_rows
from dataflow.comm.values.shapes import require_list
from dataflow.progress.broadcast import ProgressBatch
from dataflow.text import plain, show

ALIGNMENT = 16
_PADDING = [bytes(n) for n in range(ALIGNMENT)]
_ROWS, _COLUMNS = 0, 1
_INTEGERS = {int}
_MOST = (1 << 63) - 1  # of anything that is counted or weighed

Buffer = bytes | memoryview


def encode_messages(messages: Sequence[AnyMessage]) -> tuple[bytes, list[Buffer]]:
    """The header and the pieces of the body of one frame."""
    buffers: list[Buffer] = []
    bodies = [_ENCODERS[type(message)](message, buffers) for message in messages]
    header = codec.pack([[len(buffer) for buffer in buffers], bodies])
    return header, _padded(buffers)


def decode_messages(frame: Frame, sender: int) -> list[AnyMessage]:
    """The messages of a frame; FrameError if they cannot be right."""
    try:
        sizes, bodies = require_list(codec.decode(frame.header), 2)
        buffers = _Buffers(_cut(frame.body, require_list(sizes)))
        messages = [_decode(sender, buffers, body) for body in require_list(bodies)]
        buffers.require_used()
    except Exception as error:  # whatever it is: the peer's bytes are to blame
        why = plain(str(error) or type(error).__name__, 500)
        raise FrameError(f"worker {sender} sent a frame that makes no sense: {why}") from None
    return messages


def decode_quick(frame: QuickFrame, sender: int) -> Data:
    """The batch of rows of a frame; FrameError if it cannot be right."""
    try:
        rows = decode_rows(frame.body)
    except Exception as error:
        raise FrameError(f"worker {sender} sent a frame that makes no sense: {plain(str(error), 500)}") from None
    if frame.time < 0 or frame.weight > _MOST:
        raise FrameError(f"worker {sender} sent rows of time {frame.time} that weigh {frame.weight}")
    return Data(sender, frame.dataflow, frame.channel, frame.time, rows, frame.weight, len(frame.body))


def _padded(buffers: list[Buffer]) -> list[Buffer]:
    pieces: list[Buffer] = []
    for buffer in buffers:
        pieces.append(buffer)
        if len(buffer) % ALIGNMENT:
            pieces.append(_PADDING[-len(buffer) % ALIGNMENT])
    return pieces


def _cut(body: memoryview, sizes: list[object]) -> list[memoryview]:
    buffers = []
    start = 0
    for size in sizes:
        if type(size) is not int or not 0 <= size <= len(body):
            raise ValueError(f"a buffer of {show(size)} bytes")
        buffers.append(body[start : start + size])
        start += size + -size % ALIGNMENT
    if start != len(body):
        raise ValueError(f"buffers of {start} bytes in a body of {len(body)}")
    return buffers


class _Buffers:
    """The buffers of a frame, to be taken in order, each once."""

    __slots__ = ("_buffers", "_next", "taken")

    def __init__(self, buffers: list[memoryview]) -> None:
        self._buffers = buffers
        self._next = 0
        self.taken = 0  # bytes

    def __iter__(self) -> _Buffers:
        return self

    def __next__(self) -> memoryview:
        """The next buffer."""
        if self._next == len(self._buffers):
            raise StopIteration
        return self.take(self._next)

    def take(self, number: object) -> memoryview:
        """The buffer that a message names; ValueError if it is not the next."""
        self.require_next(number)
        buffer = self._buffers[self._next]
        self._next += 1
        self.taken += len(buffer)
        return buffer

    def require_next(self, number: object) -> None:
        """ValueError if a message names another buffer than the next."""
        if type(number) is not int or number != self._next or number >= len(self._buffers):
            raise ValueError(f"buffer {show(number)} where {self._next} of {len(self._buffers)} is due")

    def require_used(self) -> None:
        """ValueError if buffers are left: nobody would send what nobody reads."""
        if self._next != len(self._buffers):
            raise ValueError(f"{self._next} of {len(self._buffers)} buffers are used")


# One encoder and one decoder per kind of message


def _encode_progress(message: Progress, buffers: list[Buffer]) -> list[object]:
    batch = message.batch
    locations = [change[0][0] for change in batch.changes]
    times = [change[0][1] for change in batch.changes]
    diffs = [change[1] for change in batch.changes]
    return [1, message.dataflow, batch.sequence, locations, times, diffs]


def _decode_progress(
    sender: int, _: _Buffers, dataflow: object, sequence: object, locations: object, times: object, diffs: object
) -> Progress:
    places, counts = _integers(locations), _integers(diffs)
    if counts and not -_MOST <= min(counts) <= max(counts) <= _MOST:
        raise ValueError("a count that cannot be")
    changes = tuple(zip(zip(places, require_list(times), strict=True), counts, strict=True))
    return Progress(sender, _number(dataflow), ProgressBatch(sender, _number(sequence), changes))


def _integers(values: object) -> list[int]:
    if type(values) is not list or not set(map(type, values)) <= _INTEGERS:
        raise TypeError("a location or a count that is not an integer")
    return values


def _encode_data(message: Data, buffers: list[Buffer]) -> list[object]:
    body: list[object] = [2, message.dataflow, message.channel, message.time, message.size, len(buffers)]
    batch = message.batch
    if isinstance(batch, Columns):
        return [*body, _COLUMNS, encode_columns(batch, buffers)]
    buffers.append(encode_rows(batch if isinstance(batch, list) else list(batch)))
    return [*body, _ROWS]


def _decode_data(
    sender: int,
    buffers: _Buffers,
    dataflow: object,
    channel: object,
    time: object,
    size: object,
    first: object,
    kind: object,
    *shapes: object,
) -> Data:
    batch: Batch
    before = buffers.taken
    if type(kind) is not int or kind not in (_ROWS, _COLUMNS) or len(shapes) != kind:
        raise ValueError(f"a batch of kind {show(kind)} with {len(shapes)} shapes")
    if kind == _COLUMNS:
        shape = require_list(shapes[0])
        if len(shape) > 1:  # a batch of no rows may have no column, and then no buffer
            buffers.require_next(first)
        batch = decode_columns(shape, buffers)
    else:
        batch = decode_rows(buffers.take(first))
    received = buffers.taken - before
    return Data(sender, _number(dataflow), _number(channel), time, batch, _number(size), received)


def _decode_hello(sender: int, _: _Buffers, dataflow: object, name: object, lines: object) -> Hello:
    if type(name) is not str or type(lines) is not list or not set(map(type, lines)) <= {str}:
        raise TypeError("a description of a dataflow that is not text")
    return Hello(sender, _number(dataflow), name, tuple(lines))


def _decode_pressure(sender: int, _: _Buffers, on: object, dataflow: object) -> Pressure:
    if type(on) is not bool:
        raise TypeError(f"{show(on)} where true or false belongs")
    return Pressure(sender, on, ON_ITS_WAY if dataflow == ON_ITS_WAY else _number(dataflow))


def _encode_membership(message: Membership, buffers: list[Buffer]) -> list[object]:
    buffers.append(codec.encode(message.said))
    return [10, message.about, len(buffers) - 1]


def _decode_membership(sender: int, buffers: _Buffers, about: object, number: object) -> Membership:
    if type(about) is not str:
        raise TypeError(f"{show(about)} where text belongs")
    return Membership(sender, about, codec.decode(buffers.take(number)))


def _decode_returned(sender: int, _: _Buffers, blocks: object) -> BlocksReturned:
    if type(blocks) is not list:
        raise TypeError(f"{show(blocks)} where a list of blocks belongs")
    return BlocksReturned(sender, [_number(block) for block in blocks])


def _decode(sender: int, buffers: _Buffers, body: object) -> AnyMessage:
    """One message."""
    if type(body) is not list or not body or type(body[0]) is not int or body[0] not in _DECODERS:
        raise ValueError(f"a message that is none: {show(body)}")
    decode, fields = _DECODERS[body[0]]
    if len(body) - 1 not in fields:
        raise ValueError(f"a message with too many fields, or too few: {show(body)}")
    return decode(sender, buffers, *body[1:])


def _number(value: object) -> int:
    """An integer that counts or weighs something. (A bool is none, and neither is 1.0.)"""
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError(f"{show(value)} where a number belongs")
    return value


# By the type of a message: what takes one of it, and the buffers to add to.
_ENCODERS: dict[type, Callable[..., list[object]]] = {
    Hello: lambda m, _: [0, m.dataflow, m.name, list(m.description)],
    Progress: _encode_progress,
    Data: _encode_data,
    Dropped: lambda m, _: [3, m.dataflow],
    Finished: lambda m, _: [4, m.dataflows],
    Consumed: lambda m, _: [5, m.size],
    Pressure: lambda m, _: [6, m.on, m.dataflow],
    Goodbye: lambda m, _: [7],
    BlocksReturned: lambda m, _: [8, m.blocks],
    Membership: _encode_membership,
    Taken: lambda m, _: [9, m.dataflow, m.channel, m.size],
}

# By the code of a message: what takes its sender, the buffers and so many fields as are named, of any kind.
_DECODERS: dict[int, tuple[Callable[..., AnyMessage], tuple[int, ...]]] = {
    0: (_decode_hello, (3,)),
    1: (_decode_progress, (5,)),
    2: (_decode_data, (6, 7)),
    3: (lambda sender, _, dataflow: Dropped(sender, _number(dataflow)), (1,)),
    4: (lambda sender, _, dataflows: Finished(sender, _number(dataflows)), (1,)),
    5: (lambda sender, _, size: Consumed(sender, _number(size)), (1,)),
    6: (_decode_pressure, (2,)),
    7: (lambda sender, _: Goodbye(sender), (0,)),
    8: (_decode_returned, (1,)),
    10: (_decode_membership, (2,)),
    9: (lambda sender, _, *numbers: Taken(sender, *map(_number, numbers)), (3,)),
}
