"""A fuzzer over all that looks at bytes from a peer: the frame decoder, the messages in frames, the rows in messages.

`run_case(seed)` makes a stream of frames, damages it in one of several ways, and feeds it in random pieces. What comes
out must be messages (exactly those that were sent, if nothing was damaged) or a ProtocolError, and nothing else.

Damage without the key is caught by the checksum, so most of it is done by somebody who has the key: headers and bodies
are changed, as bytes or as structures that are valid msgpack of the wrong kind, and then sealed.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from dataflow.columns import Columns
from dataflow.comm.arena import Arena
from dataflow.comm.frames import FrameDecoder, FrameEncoder, FrameLimits
from dataflow.comm.messages import (
    AnyMessage,
    BlocksReturned,
    Consumed,
    Data,
    Dropped,
    Finished,
    Goodbye,
    Hello,
    Pressure,
    Progress,
    Taken,
)
from dataflow.comm.wire import decode_messages, encode_messages
from dataflow.errors import ProtocolError
from dataflow.progress.broadcast import ProgressBatch
from tests.comm.values import BATCHES, ROWS

KEY = b"a key for the fuzzer's frames"
LIMITS = FrameLimits(header=1 << 18, body=1 << 20)
SENDER = 1

CLASSES = (
    "tests.comm.values:Bid",
    "tests.comm.values:Frozen",
    "tests.comm.values:Color",
    "tests.comm.values:Access",
    "tests.comm.values:Pair",
    "tests.comm.values:Empty",
    "builtins:int",
    "builtins:BaseException",
    "dataflow.errors:PeerLost",
    "os:system",
    "sys:modules",
    "numpy:testing.Tester",
    "no such:thing",
    ":",
    "",
)
TEXTS = ("", "x", "grün", "\U0001f600", None)
STRINGS = (pa.string(), pa.large_string())
DTYPES = (
    "<i8",
    "string",
    "large_string",
    "binary",
    "string_view",
    "|O",
    "O",
    "|V0",
    "<U0",
    "<U99",
    "i4,i4",
    "(2,3)f8",
    "(1,",
    "f8[",
    "<M8[",
    "<m8[7D]",
    "S-1",
    "|S9999",
)


def run_case(seed: int) -> None:
    """One stream of frames, perhaps damaged, through the decoders. Raises if they do what they never may."""
    chance = Random(seed)
    try:
        chance.choice(KINDS)(chance)
    except BaseException as error:
        error.add_note(f"to see it again: tests.comm.fuzz.run_case({seed})")
        raise


def _untouched(chance: Random) -> None:
    """What was sent arrives, whatever pieces it arrives in."""
    frames = [random_messages(chance) for _ in range(chance.randint(1, 4))]
    encoder = FrameEncoder(KEY, LIMITS)
    stream = b"".join(_seal(encoder, *encode_messages(messages)) for messages in frames)
    arrived = receive(chance, stream)
    expected = [message for messages in frames for message in messages]
    if len(arrived) != len(expected) or list(map(repr, arrived)) != list(map(repr, expected)):
        raise AssertionError(f"{expected!r} arrived as {arrived!r}")


def _damaged_stream(chance: Random) -> None:
    """By somebody without the key: bytes changed, left out, put in, doubled; frames replayed, reordered, left out."""
    encoder = FrameEncoder(KEY, LIMITS)
    frames = [_seal(encoder, *encode_messages(random_messages(chance))) for _ in range(chance.randint(1, 4))]
    if chance.random() < 0.3:
        frames = chance.choices(frames, k=chance.randint(1, 5))
        stream = b"".join(frames)
    else:
        stream = b"".join(frames)
        for _ in range(chance.choice((1, 1, 2, 5))):
            stream = damage(chance, stream)
    _survive(chance, stream)


def _garbage(chance: Random) -> None:
    """From somebody who speaks another protocol, or knows how a frame begins."""
    stream = chance.randbytes(chance.choice((1, 27, 28, 100, 5000)))
    if chance.random() < 0.6:
        header = chance.choice((0, 1, 100, LIMITS.header, LIMITS.header + 1, 2**31))
        body = chance.choice((0, 9, 2**20, 2**63))
        stream = b"MdF1" + header.to_bytes(4, "little") + body.to_bytes(8, "little") + stream
    _survive(chance, stream)


def _damaged_parts(chance: Random) -> None:
    """By somebody with the key: bytes of headers and bodies."""
    encoder = FrameEncoder(KEY, LIMITS)
    stream = b""
    for _ in range(chance.randint(1, 3)):
        header, buffers = encode_messages(random_messages(chance))
        body = b"".join(buffers)
        if chance.random() < 0.6:
            header = damage(chance, header)
        if chance.random() < 0.6:
            body = damage(chance, body)
        stream += _seal(encoder, header, [body])
    _survive(chance, stream)


def _wrong_structures(chance: Random) -> None:
    """By somebody with the key: everything is well-formed, and something is not what it should be."""
    header, buffers = encode_messages(random_messages(chance))
    tree = open_tree(header)
    pieces = [bytes(buffer) for buffer in buffers]
    if chance.random() < 0.7:
        tree = change(chance, tree)
    else:
        # Into the rows of a batch, with the length that the header says they have now.
        rows = [number for number, piece in enumerate(pieces) if _looks_like_rows(piece)]
        if rows:
            number = chance.choice(rows)
            pieces[number] = close_tree(change(chance, open_tree(pieces[number])))
            tree[0] = [len(piece) for piece in pieces]
            pieces = [piece + bytes(-len(piece) % 16) for piece in pieces]
    encoder = FrameEncoder(KEY, LIMITS)
    _survive(chance, _seal(encoder, close_tree(tree), pieces))


def _shared_memory(chance: Random) -> None:
    """By somebody with the key, of a body in shared memory: it is where it should be, or anywhere, or there is none."""
    header, buffers = encode_messages(random_messages(chance))
    arena = Arena(1 << 17)
    body = sum(map(len, buffers))
    at = arena.lend(buffers, body)
    if at is None or chance.random() < 0.6:
        at = chance.choice((0, 1, 4096, 1 << 16, (1 << 17) - 1, 1 << 17, 2**63, 2**64 - 1))
    if chance.random() < 0.3:
        body = chance.choice((0, 1, 1 << 17, LIMITS.body))
    if chance.random() < 0.2:
        header = damage(chance, header)
    stream = FrameEncoder(KEY).encode(header, body, at)
    if chance.random() < 0.2:
        stream = damage(chance, stream)
    _survive(chance, stream, arena)


KINDS = (_untouched, _damaged_stream, _garbage, _damaged_parts, _shared_memory, _wrong_structures, _wrong_structures)


# ------------------------------------------------------------------------------------------------------------- feeding


def receive(chance: Random, stream: bytes, arena: Arena | None = None) -> list[AnyMessage]:
    """The messages of a stream that arrives in random pieces."""
    decoder = FrameDecoder(KEY, LIMITS, arena and (lambda start, size: arena.borrow(start, size, int)))
    rest = memoryview(stream)
    messages: list[AnyMessage] = []
    largest = chance.choice((1, 7, 1000, 1 << 20))
    while rest:
        buffer = decoder.buffer()
        count = min(len(buffer), len(rest), chance.randint(1, largest))
        if not count:
            raise AssertionError("the decoder has no room for more bytes")
        if len(buffer) > LIMITS.header + LIMITS.body + (1 << 17):
            raise AssertionError(f"the decoder asked for a buffer of {len(buffer)} bytes")
        buffer[:count] = rest[:count]
        rest = rest[count:]
        decoder.received(count)
        while (frame := decoder.take()) is not None:
            messages += decode_messages(frame, SENDER)
    return messages


def _survive(chance: Random, stream: bytes, arena: Arena | None = None) -> None:
    try:
        messages = receive(chance, stream, arena)
    except ProtocolError as error:
        if not str(error):
            raise AssertionError("an error that says nothing") from error
        return
    for message in messages:
        if message.sender != SENDER:
            raise AssertionError(f"worker {SENDER} could speak for another: {message!r}")


def _seal(encoder: FrameEncoder, header: bytes, buffers: list[Any]) -> bytes:
    body = b"".join(buffers)
    if len(header) > LIMITS.header or len(body) > LIMITS.body:
        header, body = b"\xc0", b""
    return encoder.encode(header, len(body)) + body


# ------------------------------------------------------------------------------------------------------- what is sent


def random_messages(chance: Random) -> list[AnyMessage]:
    """A few messages of any kinds."""
    return [_random_message(chance) for _ in range(chance.choice((0, 1, 1, 2, 5)))]


def _random_message(chance: Random) -> AnyMessage:
    number = chance.choice((0, 1, 77, 2**40))
    time: Any = chance.choice((0, 5, (1, 2), (1, (2, 3)), "t", None))
    kind = chance.randrange(10)
    if kind == 0:
        return Hello(SENDER, number, "name", ("input", "exchange"))
    if kind == 1:
        changes = tuple(((chance.randrange(9), time), chance.randint(-3, 3)) for _ in range(chance.randrange(4)))
        return Progress(SENDER, number, ProgressBatch(SENDER, number, changes))
    if kind == 2:
        return chance.choice((Dropped, Finished, Consumed, lambda *n: Taken(*n, 3, number)))(SENDER, number)
    if kind == 3:
        return chance.choice((Pressure(SENDER, True), Goodbye(SENDER), BlocksReturned(SENDER, [number, 4096])))
    if kind == 4:
        length = chance.randrange(5)
        texts = pa.array([chance.choice(TEXTS) for _ in range(length + 2)], chance.choice(STRINGS))
        arrays = {"a": np.arange(length), "b": np.zeros(length, "f4"), "c": texts.slice(chance.randrange(3), length)}
        return Data(SENDER, number, 3, time, Columns(arrays), number)
    rows = chance.choice(BATCHES) if kind < 8 else chance.choices(ROWS, k=chance.randint(1, 3))
    return Data(SENDER, number, 3, time, list(rows), number)


# ------------------------------------------------------------------------------------------------------------- damage


def damage(chance: Random, data: bytes) -> bytes:
    """The same bytes, but for one accident."""
    at = chance.randrange(len(data) + 1)
    to = min(len(data), at + chance.choice((1, 2, 8, 100)))
    kind = chance.randrange(6)
    if kind == 0:
        return data[:at] + bytes(byte ^ (1 << chance.randrange(8)) for byte in data[at : at + 1]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + chance.randbytes(to - at) + data[to:]
    if kind == 2:
        return data[:at] + data[to:]
    if kind == 3:
        return data[:at] + chance.randbytes(chance.choice((1, 4, 50))) + data[at:]
    if kind == 4:
        return data[:to] + data[at:]
    return data[:at]


def change(chance: Random, tree: Any) -> Any:
    """The same structure with one node, somewhere, replaced, left out or doubled."""
    if isinstance(tree, list) and tree and chance.random() < 0.85:
        at = chance.randrange(len(tree))
        kind = chance.randrange(12)
        if kind == 0:
            return tree[:at] + tree[at + 1 :]
        if kind == 1:
            return [*tree[:at], tree[at], *tree[at:]]
        return [*tree[:at], change(chance, tree[at]), *tree[at + 1 :]]
    if isinstance(tree, Extension) and chance.random() < 0.8:
        if chance.random() < 0.3:
            return Extension(_random_code(chance), tree.inside)
        return Extension(tree.code, change(chance, tree.inside))
    return random_value(chance)


def random_value(chance: Random, depth: int = 3) -> Any:
    """Anything that msgpack can say, with a liking for what might hurt."""
    kind = chance.randrange(12 if depth else 8)
    if kind == 0:
        return chance.choice((None, True, False, float("nan"), float("inf"), -0.0))
    if kind == 1:
        return chance.choice((0, 1, 2, 3, 7, 8, -1, -(2**63), 2**64 - 1, 2**32, 10**6))
    if kind == 2:
        return chance.choice(("", "x", "1e5", "NaN", "sNaN", "2026-01-01", "x" * 16, "\x00" * 40))
    if kind == 3:
        return chance.randbytes(chance.choice((0, 1, 8, 16, 100)))
    if kind == 4:
        return chance.choice(CLASSES)
    if kind == 5:
        return chance.choice(DTYPES)
    if kind == 6:
        return []
    if kind == 7:
        return {}
    if kind == 8:
        return {random_key(chance): random_value(chance, depth - 1) for _ in range(3)}
    if kind == 9:
        return [random_value(chance, depth - 1) for _ in range(chance.randint(1, 4))]
    if kind == 10:
        return Extension(_random_code(chance), [random_value(chance, depth - 1) for _ in range(chance.randint(1, 3))])
    return Extension(_random_code(chance), random_value(chance, depth - 1))


def random_key(chance: Random) -> Any:
    """Keys of a dictionary need not be hashable on the wire."""
    return chance.choice((0, "k", b"k", None, 1.5, Extension(1, [1, [2]]), Extension(16, [1])))


def _random_code(chance: Random) -> int:
    return chance.choice((*range(8), *range(15, 28), 127))


class Extension:
    """An extension of msgpack whose inside is a tree as well."""

    def __init__(self, code: int, inside: Any) -> None:
        self.code = code
        self.inside = inside

    def __hash__(self) -> int:
        return hash(self.code)

    def __eq__(self, other: object) -> bool:
        return self is other


def open_tree(data: bytes) -> Any:
    """Encoded data as a tree."""

    def extension(code: int, inside: bytes) -> Any:
        return Extension(code, open_tree(inside))

    return msgpack.unpackb(data, ext_hook=extension, strict_map_key=False)


def close_tree(tree: Any) -> bytes:
    """A tree as encoded data."""

    def extension(value: Any) -> Any:
        return msgpack.ExtType(value.code, close_tree(value.inside))

    packed = msgpack.packb(tree, default=extension)
    assert isinstance(packed, bytes)
    return packed


def _looks_like_rows(piece: bytes) -> bool:
    try:
        found = open_tree(piece)
    except ValueError:
        return False
    return isinstance(found, list) and len(found) == 2
