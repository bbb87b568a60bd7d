"""Frames: the unit of what goes over a connection. Pure: bytes in, frames out.

    prefix, 28 bytes    magic (4), length of header (4), length of body (8), keyed checksum (12)
    header              msgpack
    body                raw buffers, one after the other

The checksum is a keyed hash of the frame's number, both lengths and the header. The key belongs to one direction of
one connection (see `handshake`), so a frame that was garbled, truncated, replayed, reordered, or made by somebody who
does not know the secret is recognised before its header is looked at. The body is not part of it: TLS is for that.
Lengths are checked against limits before anything of that size is allocated.

Between workers of one host a large body may lie in memory that they share (see `arena`). Such a frame begins with
another magic number, its header with the place of the body (8), and nothing follows it.

Between two workers that share a ring (see `ring`) frames are numbered and not sealed, and a batch of rows has a frame
of its own, of a third kind, which is all that most of them ever say: a fixed prefix, and the rows.

    quick prefix, 40 bytes    magic (4), length of rows (4), number (8), dataflow (4), channel (4), time (8), weight (8)

The decoder never copies a body: the reader asks where the next bytes should go (`buffer`), puts them there and says how
many there were (`received`). A body that is large gets a buffer of its own, which then belongs to whoever takes the
frame.
"""

from __future__ import annotations

import hashlib
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from dataflow.comm.pool import BufferPool
from dataflow.errors import ProtocolError

MAGIC = b"MdF1"
SHARED = b"MdS1"  # of a frame whose body lies in shared memory
QUICK = b"MdQ1"  # of a frame that is one batch of rows
_QUICK = struct.Struct("<4sIQIIqQ")
QUICK_MOST = 1 << 16  # bytes of rows in such a frame, at most
_PREFIX = struct.Struct("<4sIQ")
_CHECKSUM = 12
PREFIX_SIZE = _PREFIX.size + _CHECKSUM
_NUMBER = struct.Struct("<Q")
_CHUNK = 1 << 16
_EMPTY = memoryview(b"")


Borrow = Callable[[int, int], memoryview]
"""(start, size): that part of the peer's shared memory; ValueError if there is none."""


class FrameError(ProtocolError):
    """A frame that cannot be right. The connection that brought it is not to be trusted any more."""


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """How large the parts of a frame may be."""

    header: int = 1 << 24
    body: int = 1 << 31

    def check(self, header: int, body: int) -> None:
        """FrameError if a part is too large."""
        if header > self.header:
            raise FrameError(f"a frame with a header of {header} bytes is over the limit of {self.header}")
        if body > self.body:
            raise FrameError(f"a frame with a body of {body} bytes is over the limit of {self.body}")


class _Seal:
    """The keyed checksums of one direction's frames."""

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes) -> None:
        self._keyed = hashlib.blake2b(key=key, digest_size=_CHECKSUM)

    def checksum(self, number: int, lengths: bytes, header: bytes) -> bytes:
        """Of a frame's number, its prefix up to the checksum, and its header."""
        hasher = self._keyed.copy()  # cheaper than hashing the key each time
        hasher.update(_NUMBER.pack(number) + lengths + header)
        return hasher.digest()


class _Numbers:
    """In memory that two workers share: a frame's number stands where its checksum would."""

    __slots__ = ()

    def checksum(self, number: int, lengths: bytes, header: bytes) -> bytes:
        """The number, as long as a checksum."""
        return _NUMBER.pack(number) + b"ring"


def _seal(key: bytes | None) -> _Seal | _Numbers:
    return _Numbers() if key is None else _Seal(key)


class FrameEncoder:
    """Numbers and seals the frames of one direction of one connection."""

    def __init__(self, key: bytes | None, limits: FrameLimits | None = None) -> None:
        """Without a key, frames are numbered and not sealed: for memory that nobody else can have."""
        self._seal = _seal(key)
        self._limits = limits or FrameLimits()
        self._number = 0

    def encode(self, header: bytes, body: int = 0, at: int | None = None) -> bytes:
        """The prefix and header of the next frame, to be followed by `body` bytes, unless they lie in shared memory."""
        if at is not None:
            header = _NUMBER.pack(at) + header
        self._limits.check(len(header), body)
        prefix = _PREFIX.pack(MAGIC if at is None else SHARED, len(header), body)
        sealed = prefix + self._seal.checksum(self._number, prefix, header) + header
        self._number += 1
        return sealed


    def encode_quick(self, dataflow: int, channel: int, time: int, weight: int, rows: bytes) -> bytes:
        """The whole of the next frame, of rows. struct.error if a number does not fit."""
        prefix = _QUICK.pack(QUICK, len(rows), self._number, dataflow, channel, time, weight)
        self._number += 1
        return prefix + rows


@dataclass(slots=True)
class Frame:
    """One frame. The body is a view of a buffer that nobody else will write to. Nobody changes one."""

    header: bytes
    body: memoryview


@dataclass(slots=True)
class QuickFrame(Frame):
    """A frame that is one batch of rows: they are its body."""

    dataflow: int
    channel: int
    time: int
    weight: int


def _whole(header: bytes, body: bytes) -> Frame:
    """A frame with a small body, in memory of its own: arrays will lie there, which must be aligned and writable."""
    return Frame(header, memoryview(bytearray(body)) if body else _EMPTY)


class FrameDecoder:
    """Cuts the bytes of one direction of one connection into frames."""

    def __init__(self, key: bytes | None, limits: FrameLimits | None = None, borrow: Borrow | None = None) -> None:
        """`borrow` finds bodies in memory that is shared with the peer; without it there is none."""
        self._seal = _seal(key)
        self._limits = limits or FrameLimits()
        self._borrow = borrow
        self._number = 0
        self._pool = BufferPool()
        self._frames: deque[Frame] = deque()
        self._quick = key is None
        self._small = bytearray(_CHUNK)  # where bytes go while no large body is on its way
        self._start = 0  # the part of _small that has not been looked at
        self._end = 0
        self._header: bytes | None = None  # of the frame whose body is on its way
        self._body = memoryview(b"")
        self._filled = 0

    def buffer(self) -> memoryview:
        """Where the next bytes that arrive should be put; never empty."""
        if self._header is not None:
            return self._body[self._filled :]
        if self._end == len(self._small):
            self._make_room()
        return memoryview(self._small)[self._end :]

    def received(self, count: int) -> None:
        """So many bytes were put into the buffer. FrameError if what has arrived cannot be right."""
        if self._header is not None:
            self._filled += count
            if self._filled == len(self._body):
                self._complete(self._header, self._body)
        else:
            self._end += count
        while self._header is None and self._next():
            pass

    def feed(self, data: bytes) -> None:
        """Bytes have arrived in an object of their own. Whole frames, as they nearly always are, are cut out of it."""
        at, end = 0, len(data)
        while end - at >= PREFIX_SIZE and not self.in_the_middle:
            if data[at : at + 4] == QUICK:
                stop = self._take_quick(data, at, end)
                if not stop:
                    break
                at = stop
                continue
            header_size, body_size, shared = self._sizes(data, at)
            after = at + PREFIX_SIZE + header_size
            stop = after if shared else after + body_size
            if stop > end:
                break
            header = self._open(data, at, header_size)
            self._frames.append(self._find_body(header, body_size) if shared else _whole(header, data[after:stop]))
            at = stop
        while at < end:
            buffer = self.buffer()
            count = min(len(buffer), end - at)
            buffer[:count] = data[at : at + count]
            at += count
            self.received(count)

    def _take_quick(self, data: bytes | bytearray, at: int, end: int) -> int:
        """Takes a frame of rows that begins here; where it ends, or 0 if not all of it is there."""
        start = at + _QUICK.size
        if end < start:
            return 0
        _, size, number, dataflow, channel, time, weight = _QUICK.unpack_from(data, at)
        if not self._quick or size > QUICK_MOST or number != self._number:
            raise FrameError(f"frame {self._number} is garbled, replayed, or not from whom it seems to be")
        if end < start + size:
            return 0
        self._number += 1
        stop: int = start + size
        self._frames.append(QuickFrame(b"", memoryview(data[start:stop]), dataflow, channel, time, weight))
        return stop

    def take(self) -> Frame | None:
        """The next whole frame, if there is one."""
        return self._frames.popleft() if self._frames else None

    @property
    def in_the_middle(self) -> bool:
        """Whether part of a frame has arrived: an end of the connection here would be a truncation."""
        return self._header is not None or self._end > self._start

    @property
    def in_a_body(self) -> bool:
        """Whether the next bytes belong to a body that has a buffer of its own."""
        return self._header is not None

    def _sizes(self, data: bytes | bytearray, start: int) -> tuple[int, int, bool]:
        """What a prefix says: the sizes of header and body, and whether the body lies in shared memory."""
        magic, header_size, body_size = _PREFIX.unpack_from(data, start)
        shared = magic == SHARED and self._borrow is not None
        if magic != MAGIC and not shared:
            raise FrameError("these are not frames: the peer speaks another protocol, or the bytes are garbled")
        self._limits.check(header_size, body_size)
        return header_size, body_size, shared

    def _open(self, data: bytes | bytearray, start: int, header_size: int) -> bytes:
        """The header of a frame, which is the next one as its checksum proves."""
        middle = start + PREFIX_SIZE
        prefix, header = bytes(data[start : start + _PREFIX.size]), bytes(data[middle : middle + header_size])
        if data[start + _PREFIX.size : middle] != self._seal.checksum(self._number, prefix, header):
            raise FrameError(f"frame {self._number} is garbled, replayed, or not from whom it seems to be")
        self._number += 1
        return header

    def _next(self) -> bool:
        """Looks at the next frame among the bytes at hand; whether it made headway."""
        start, small = self._start, self._small
        middle = start + PREFIX_SIZE
        if self._end < middle:
            return False
        if small[start : start + 4] == QUICK:
            stop = self._take_quick(small, start, self._end)
            if not stop:
                if start + _QUICK.size + QUICK_MOST > len(small):
                    self._make_room(_QUICK.size + QUICK_MOST)
                return False
            self._start = stop
            return True
        header_size, body_size, shared = self._sizes(small, start)
        if self._end < middle + header_size:
            if PREFIX_SIZE + header_size > len(small):
                self._make_room(PREFIX_SIZE + header_size)
            return False
        header = self._open(small, start, header_size)
        self._start = middle + header_size
        if shared:
            self._frames.append(self._find_body(header, body_size))
        else:
            self._begin_body(header, body_size)
        return True

    def _find_body(self, header: bytes, size: int) -> Frame:
        """The body is there already."""
        assert self._borrow is not None
        try:
            (start,) = _NUMBER.unpack_from(header)
            return Frame(header[_NUMBER.size :], self._borrow(start, size))
        except (ValueError, struct.error) as error:
            raise FrameError(f"frame {self._number - 1} has its body where there is none: {error}") from None

    def _begin_body(self, header: bytes, size: int) -> None:
        """Gives the body a buffer of its own and moves into it what has arrived already."""
        at_hand = min(size, self._end - self._start)
        if at_hand == size <= _CHUNK:
            body = memoryview(self._small[self._start : self._start + size])
            self._start += size
            self._frames.append(Frame(header, body))
            return
        body = self._pool.take(size)
        body[:at_hand] = memoryview(self._small)[self._start : self._start + at_hand]
        self._start += at_hand
        if at_hand == size:
            self._complete(header, body)
        else:
            self._header, self._body, self._filled = header, body, at_hand

    def _complete(self, header: bytes, body: memoryview) -> None:
        self._frames.append(Frame(header, body))
        self._header, self._body, self._filled = None, memoryview(b""), 0

    def _make_room(self, size: int = _CHUNK) -> None:
        """Moves what has not been looked at to the front of a buffer of at least that size.

        A buffer that a large header needed is given back when it is empty again.
        """
        rest = self._small[self._start : self._end]
        if len(rest) == len(self._small):
            size = max(size, 2 * len(self._small))
        self._small = bytearray(max(size, len(rest), _CHUNK))
        self._small[: len(rest)] = rest
        self._start, self._end = 0, len(rest)
