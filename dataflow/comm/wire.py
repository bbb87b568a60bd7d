"""Messages as frames, and back. Pure.

A frame carries any number of messages: its header is a list of them, and the buffers of their data follow in its
body, each at a multiple of 16 bytes so that arrays can be used where they lie. Rows are packed into one buffer;
columns are their arrays' own memory, neither copied when they are sent nor when they are received.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dataflow import codec
from dataflow.channels.pact import Batch
from dataflow.columns import Columns
from dataflow.comm.columns import decode_columns, encode_columns
from dataflow.comm.frames import Frame, FrameError
from dataflow.comm.messages import (
    AnyMessage,
    Consumed,
    Data,
    Dropped,
    Finished,
    Goodbye,
    Hello,
    Pressure,
    Progress,
    Returned,
    Taken,
)
from dataflow.comm.rows import decode_rows, encode_rows
from dataflow.progress.broadcast import ProgressBatch

ALIGNMENT = 16
_PADDING = [bytes(n) for n in range(ALIGNMENT)]
_ROWS, _COLUMNS = 0, 1
_INTEGERS = {int}

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
        sizes, bodies = codec.decode(frame.header)
        buffers = _cut(frame.body, sizes)
        messages: list[AnyMessage] = [_DECODERS[body[0]](sender, buffers, *body[1:]) for body in bodies]
    except Exception as error:  # whatever it is: the peer's bytes are to blame
        raise FrameError(f"worker {sender} sent a frame that makes no sense: {error}") from error
    return messages


def _padded(buffers: list[Buffer]) -> list[Buffer]:
    pieces: list[Buffer] = []
    for buffer in buffers:
        pieces.append(buffer)
        if len(buffer) % ALIGNMENT:
            pieces.append(_PADDING[-len(buffer) % ALIGNMENT])
    return pieces


def _cut(body: memoryview, sizes: list[int]) -> list[memoryview]:
    buffers = []
    start = 0
    for size in sizes:
        if type(size) is not int or size < 0:
            raise ValueError(f"a buffer of {size!r} bytes")
        buffers.append(body[start : start + size])
        start += size + -size % ALIGNMENT
    if start != len(body):
        raise ValueError(f"buffers of {start} bytes in a body of {len(body)}")
    return buffers


# One encoder and one decoder per kind of message


def _encode_progress(message: Progress, buffers: list[Buffer]) -> list[Any]:
    batch = message.batch
    locations = [change[0][0] for change in batch.changes]
    times = [change[0][1] for change in batch.changes]
    diffs = [change[1] for change in batch.changes]
    return [1, message.dataflow, batch.sequence, locations, times, diffs]


def _decode_progress(
    sender: int, _: list[memoryview], dataflow: int, sequence: int, locations: Any, times: Any, diffs: Any
) -> Progress:
    if not set(map(type, (*locations, *diffs))) <= _INTEGERS:
        raise TypeError("a location or a count that is not an integer")
    changes = tuple(zip(zip(locations, times, strict=True), diffs, strict=True))
    return Progress(sender, _integer(dataflow), ProgressBatch(sender, _integer(sequence), changes))


def _encode_data(message: Data, buffers: list[Buffer]) -> list[Any]:
    body = [2, message.dataflow, message.channel, message.time, message.size, len(buffers)]
    batch = message.batch
    if isinstance(batch, Columns):
        return [*body, _COLUMNS, encode_columns(batch, buffers)]
    buffers.append(encode_rows(batch if type(batch) is list else list(batch)))
    return [*body, _ROWS]


def _decode_data(
    sender: int,
    buffers: list[memoryview],
    dataflow: int,
    channel: int,
    time: Any,
    size: int,
    first: int,
    kind: int,
    shapes: Any = None,
) -> Data:
    batch: Batch
    if kind == _COLUMNS:
        batch = decode_columns(shapes, buffers, _integer(first))
    else:
        batch = decode_rows(buffers[_integer(first)])
    return Data(sender, _integer(dataflow), _integer(channel), time, batch, _integer(size))


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} where an integer belongs")
    return value


_ENCODERS: dict[type, Callable[[Any, list[Buffer]], list[Any]]] = {
    Hello: lambda m, _: [0, m.dataflow, m.name, list(m.description)],
    Progress: _encode_progress,
    Data: _encode_data,
    Dropped: lambda m, _: [3, m.dataflow],
    Finished: lambda m, _: [4, m.dataflows],
    Consumed: lambda m, _: [5, m.size],
    Pressure: lambda m, _: [6, m.on, m.dataflow],
    Goodbye: lambda m, _: [7],
    Returned: lambda m, _: [8, m.blocks],
    Taken: lambda m, _: [9, m.dataflow, m.channel, m.size],
}

_DECODERS: dict[int, Callable[..., AnyMessage]] = {
    0: lambda sender, _, dataflow, name, lines: Hello(sender, _integer(dataflow), str(name), tuple(map(str, lines))),
    1: _decode_progress,
    2: _decode_data,
    3: lambda sender, _, dataflow: Dropped(sender, _integer(dataflow)),
    4: lambda sender, _, dataflows: Finished(sender, _integer(dataflows)),
    5: lambda sender, _, size: Consumed(sender, _integer(size)),
    6: lambda sender, _, on, dataflow: Pressure(sender, bool(on), _integer(dataflow)),
    7: lambda sender, _: Goodbye(sender),
    8: lambda sender, _, blocks: Returned(sender, [_integer(block) for block in blocks]),
    9: lambda sender, _, *numbers: Taken(sender, *map(_integer, numbers)),
}
