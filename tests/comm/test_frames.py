"""Frames that cannot be right: each is recognised by name, and before anything is allocated for it."""

from __future__ import annotations

import resource
import tracemalloc
from collections.abc import Callable
from random import Random

import msgpack
import pytest

from dataflow.comm import codec
from dataflow.comm.frames import MAGIC, PREFIX_SIZE, Frame, FrameDecoder, FrameEncoder, FrameError, FrameLimits
from dataflow.comm.wire import decode_messages
from tests.comm.rig import garbled
from tests.engine.harness import failsafe

KEY = b"key"
MEGABYTE = 1 << 20


def frames_of(*stream: bytes, key: bytes = KEY, limits: FrameLimits | None = None, piece: int = 1 << 20) -> list[Frame]:
    """What a decoder makes of bytes that arrive in pieces of at most that size."""
    decoder = FrameDecoder(key, limits)
    frames = []
    rest = memoryview(b"".join(stream))
    while rest:
        buffer = decoder.buffer()
        count = min(len(buffer), len(rest), piece)
        buffer[:count] = rest[:count]
        rest = rest[count:]
        decoder.received(count)
        while (frame := decoder.take()) is not None:
            frames.append(frame)
    return frames


def make(count: int = 3, key: bytes = KEY, body: bytes = b"body of a frame") -> list[bytes]:
    encoder = FrameEncoder(key)
    return [encoder.encode(f"header {number}".encode(), len(body)) + body for number in range(count)]


@pytest.mark.parametrize("piece", [1, 2, 13, 27, 28, 29, 1000])
def test_pieces_of_any_size_make_the_same_frames(piece: int) -> None:
    frames = frames_of(*make(5), piece=piece)
    assert [frame.header for frame in frames] == [f"header {number}".encode() for number in range(5)]
    assert all(bytes(frame.body) == b"body of a frame" for frame in frames)


@pytest.mark.parametrize("header", [0, 1, 65_507, 65_508, 65_509, 200_000])
@pytest.mark.parametrize("body", [0, 1, 65_536, 300_001])
def test_sizes_around_those_of_buffers(header: int, body: int) -> None:
    encoder = FrameEncoder(KEY)
    chance = Random(header + body)
    sent = [(chance.randbytes(header), chance.randbytes(body)) for _ in range(3)]
    stream = b"".join(encoder.encode(head, len(tail)) + tail for head, tail in sent)
    for piece in (4099, MEGABYTE):
        assert [(frame.header, bytes(frame.body)) for frame in frames_of(stream, piece=piece)] == sent


def test_bodies_belong_to_whoever_takes_them() -> None:
    first, second = frames_of(*make(2, body=b"x" * 1000))
    first.body[:] = b"y" * 1000
    assert bytes(second.body) == b"x" * 1000


def test_every_changed_byte_of_prefix_and_header_is_found() -> None:
    (frame,) = make(1)
    for at in range(PREFIX_SIZE + len(b"header 0")):
        with pytest.raises(FrameError):
            # What follows lets the decoder look even if the changed length is greater.
            frames_of(garbled(frame, at), bytes(MEGABYTE), limits=FrameLimits(header=1000, body=100_000))


WRONG: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "replayed": lambda frames: [frames[0], frames[0]],
    "replayed later": lambda frames: [*frames, frames[1]],
    "reordered": lambda frames: [frames[1], frames[0]],
    "left out": lambda frames: [frames[0], frames[2]],
    "the end of one cut off": lambda frames: [frames[0], frames[1][:-1], frames[2]],
    "the beginning of one cut off": lambda frames: [frames[0], frames[1][1:]],
    "another protocol": lambda frames: [frames[0], b"GET / HTTP/1.1\r\nHost: here.example\r\n\r\n"],
    "zeros": lambda frames: [frames[0], bytes(100)],
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_frames_that_do_not_belong_are_found(wrong: Callable[[list[bytes]], list[bytes]]) -> None:
    with pytest.raises(FrameError, match=r"garbled|not frames"):
        frames_of(*wrong(make(3)))


def test_a_frame_of_the_other_direction_is_found() -> None:
    with pytest.raises(FrameError, match="not from whom it seems"):
        frames_of(*make(1, key=b"key of the other direction"))


def test_a_truncated_frame_is_not_taken_for_a_whole_one() -> None:
    whole = b"".join(make(2))
    for end in range(len(whole)):
        decoder = FrameDecoder(KEY)
        decoder.buffer()[:end] = whole[:end]
        decoder.received(end)
        complete = 0
        while decoder.take() is not None:
            complete += 1
        assert complete == (end >= len(whole) // 2)
        assert decoder.in_the_middle == (end not in (0, len(whole) // 2))


@pytest.mark.parametrize(
    ("header", "body", "what"),
    [(2**24 + 1, 0, "header"), (2**32 - 1, 0, "header"), (0, 2**31 + 1, "body"), (0, 2**64 - 1, "body")],
)
def test_what_is_too_large_is_refused_before_it_is_allocated(header: int, body: int, what: str) -> None:
    prefix = MAGIC + header.to_bytes(4, "little") + body.to_bytes(8, "little") + bytes(12)
    with allocating_at_most(MEGABYTE), pytest.raises(FrameError, match=f"{what} of {header or body} bytes.*limit"):
        frames_of(prefix)


def test_no_body_is_allocated_for_somebody_without_the_key() -> None:
    stranger = FrameEncoder(b"another key").encode(b"header", 2**31)
    with allocating_at_most(MEGABYTE), pytest.raises(FrameError):
        frames_of(stranger)


def test_the_sender_is_told_that_a_frame_is_too_large() -> None:
    with pytest.raises(FrameError, match="limit"):
        FrameEncoder(KEY, FrameLimits(header=10)).encode(b"x" * 11)


# Messages by somebody who has the key, and not our best interests at heart


def message(body: list[object], *buffers: bytes) -> Frame:
    sizes = [len(buffer) for buffer in buffers]
    padded = b"".join(buffer + bytes(-len(buffer) % 16) for buffer in buffers)
    return Frame(codec.encode([sizes, [body]]), memoryview(bytearray(padded)))


def extension(code: int, inside: object) -> bytes:
    packed = msgpack.packb([1, [0, [msgpack.ExtType(code, codec.encode(inside))]]])
    assert isinstance(packed, bytes)
    return packed


def data(rows: bytes) -> Frame:
    return message([2, 0, 0, 0, 1, 0, 0], rows)


HOSTILE = {
    "a number where bytes belong in a bytearray": data(extension(20, 2**31)),
    "a number where bytes belong in an array": data(extension(6, ["<i8", [2**28], 2**31])),
    "an array that is larger than its bytes": data(extension(6, ["<i8", [2**28], b"12345678"])),
    "a fraction that takes for ever": data(extension(25, ["1e99999999"])),
    "a decimal of a fraction": data(extension(24, [0, [1] * 10, "x"])),
    "a UUID of a string": data(extension(26, "x" * 16)),
    "a dtype that does not parse": data(extension(5, ["(1,", b"1234"])),
    "a dtype of objects": data(extension(5, ["|O", b"12345678"])),
    "a dtype of a gigabyte": data(extension(5, ["|S1000000000", b"1"])),
    "a class that is none": data(extension(2, ["os:system", []])),
    "a class that is no dataclass": data(extension(2, ["builtins:int", []])),
    "too many fields": data(extension(2, ["tests.comm.values:Bid", [1, 2, 3, 4, 5]])),
    "an unknown extension": data(extension(99, [])),
    "an unknown message": message([99]),
    "a message without a kind": message([]),
    "a buffer that is not there": message([2, 0, 0, 0, 1, 5, 0]),
    "columns of different lengths": message([2, 0, 0, 0, 1, 0, 1, [["a", "<i8"], ["b", "<i8"]]], bytes(16), bytes(8)),
    "columns that do not fit their dtype": message([2, 0, 0, 0, 1, 0, 1, [["a", "<i8"]]], bytes(15)),
    "progress of different lengths": message([1, 0, 0, [1, 2], [0], [1]]),
    "sizes that are none": Frame(codec.encode([[-16], []]), memoryview(b"")),
    "sizes that are more than is there": Frame(codec.encode([[2**62], []]), memoryview(b"")),
    "a body that nobody mentioned": Frame(codec.encode([[], []]), memoryview(bytearray(16))),
    "nothing": Frame(b"", memoryview(b"")),
    "a list that claims a billion items": Frame(b"\xdd\x3b\x9a\xca\x00", memoryview(b"")),
    "a string that claims a gigabyte": Frame(b"\xdb\x3b\x9a\xca\x00x", memoryview(b"")),
    "deep lists": Frame(b"\x91" * 100_000, memoryview(b"")),
}


@pytest.mark.parametrize("frame", HOSTILE.values(), ids=HOSTILE)
def test_hostile_messages_are_refused(frame: Frame) -> None:
    with failsafe(5), allocating_at_most(8 * MEGABYTE), pytest.raises(FrameError, match="worker 7 sent"):
        decode_messages(frame, 7)


def test_extensions_in_extensions_do_not_exhaust_the_stack() -> None:
    # In a process of its own this would be a SIGSEGV.
    inside = b"\xc0"
    for _ in range(1000):
        packed = msgpack.packb(msgpack.ExtType(1, b"\x91" + inside))
        assert isinstance(packed, bytes)
        inside = packed
    with pytest.raises(FrameError):
        decode_messages(Frame(inside, memoryview(b"")), 7)


def test_decoding_imports_nothing() -> None:
    import sys

    before = set(sys.modules)
    with pytest.raises(FrameError):
        decode_messages(data(extension(2, ["numpy:f2py.Nothing", []])), 7)
    assert set(sys.modules) == before


class allocating_at_most:
    """Fails if the block allocates more than that, or grows the process by more than a bit of slack over it."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __enter__(self) -> None:
        self._resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tracemalloc.start()

    def __exit__(self, *_: object) -> None:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < self._size, f"{peak} bytes were allocated"
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._resident) * 1024
        assert grown < self._size + 32 * MEGABYTE, f"the process has grown by {grown} bytes"
