"""Boards: what a worker says to all others of its host is written once, and read by each of them where it lies.

A board is a ring of entries of four words. Nearly all are changes of progress:

    dataflow, location, time, difference

The changes of one batch are announced together, by one word, so whoever reads sees whole batches only, each once and in
order: they need no numbers. What does not fit such an entry (times that are no 64-bit integers, greetings) is a
*letter*: bytes, in one or more pieces:

    -1, bytes in all, bytes before this piece, bytes of this piece; and then that many bytes, padded to whole entries

A board that is full, because somebody has not read it for long, makes its owner keep what it has to say; nobody waits.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Collection, Iterable

from dataflow.comm.frames import FrameError
from dataflow.comm.hall import ENTRY, WEAK, WORD, Hall, fence
from dataflow.time.order import Time

WORDS = ENTRY // WORD
_LETTER = -1
_LONGEST = 1 << 26  # bytes of a letter
_pack = struct.Struct("=4q").pack

Change = tuple[tuple[int, Time], int]


class Board:
    """This worker's own board: it writes, the others read."""

    def __init__(self, hall: Hall, readers: Iterable[int]) -> None:
        """`readers`: the slots of those who read it."""
        self._hall = hall
        self._entries = hall.plan.board // ENTRY
        self._bytes = hall.board(hall.slot).cast("B")
        self._head = 0  # entries written
        self._free_until = self._entries  # entries that may be written, as far as is known
        self._readers = set(readers)
        self._unwritten: deque[bytes] = deque()  # for which there was no room
        self.written = 0  # entries that were announced
        self.behind: set[int] = set()  # workers whose link has something that may not leave before what waits here

    @property
    def full(self) -> bool:
        """Whether something waits for room."""
        return bool(self._unwritten)

    def post_changes(self, dataflow: int, changes: Collection[Change]) -> bool:
        """Writes a batch as entries; False if it has to be a letter: a time is no 64-bit integer, or it is long."""
        if not 0 < len(changes) <= self._entries // 4:
            return False
        try:
            data = b"".join([_pack(dataflow, location, time, diff) for (location, time), diff in changes])
        except struct.error:
            return False
        self._post(data)
        return True

    def post_letter(self, letter: bytes) -> None:
        """Writes bytes, in as many pieces as it takes."""
        most = self._entries // 4 * ENTRY
        for start in range(0, len(letter), most):
            piece = letter[start : start + most]
            self._post(_pack(_LETTER, len(letter), start, len(piece)) + piece + bytes(-len(piece) % ENTRY))

    def _post(self, data: bytes) -> None:
        if self._unwritten or not self._write(data):
            self._unwritten.append(data)

    def _write(self, data: bytes) -> bool:
        count = len(data) // ENTRY
        end = self._head + count
        if end > self._free_until:
            self._look_for_room()
            if end > self._free_until:
                return False
        start = self._head % self._entries * ENTRY
        stop = start + len(data)
        if stop <= len(self._bytes):
            self._bytes[start:stop] = data
        else:
            first = len(self._bytes) - start
            self._bytes[start:] = data[:first]
            self._bytes[: len(data) - first] = data[first:]
        self._head = end
        return True

    def _look_for_room(self) -> None:
        n, me = self._hall.slots, self._hall.slot
        row = self._hall.cursors[me * n : (me + 1) * n].tolist()
        read = min([row[reader] for reader in self._readers], default=self._head)
        if self._free_until - self._entries <= read <= self._head:  # or a reader lies, and gets nothing more
            self._free_until = read + self._entries

    def announce(self) -> bool:
        """Lets the others see what was written, and writes what waits as far as there is room. Whether that was
        anything. If not all has room, the readers are asked for it: they must be woken."""
        hall = self._hall
        while self._unwritten:
            if not self._write(self._unwritten[0]):
                hall.counts[hall.slots + hall.slot] = 1
                fence()
                self._look_for_room()  # once more, after asking
                if not self._write(self._unwritten[0]):
                    break
            self._unwritten.popleft()
        if not self._unwritten and hall.counts[hall.slots + hall.slot]:
            hall.counts[hall.slots + hall.slot] = 0
        if self._head == self.written:
            return False
        if WEAK:
            fence()
        hall.counts[hall.slot] = self.written = self._head
        return True

    def part_from(self, reader: int) -> None:
        """Somebody reads it no more."""
        self._readers.discard(reader)


class BoardReader:
    """The board of another worker, as this one reads it."""

    def __init__(self, hall: Hall, writer: int, name: str) -> None:
        """`writer`: its slot. `name`: how errors call it."""
        self._hall = hall
        self._writer = writer
        self._name = name
        self._entries = hall.plan.board // ENTRY
        self._bytes = hall.board(writer).cast("B")
        self.cursor = 0  # entries read
        self._told = 0  # the cursor that the writer knows of
        self._place = writer * hall.slots + hall.slot
        self._letter = bytearray()  # as far as it has come
        self._length = 0

    def read(self, head: int) -> bytes:
        """A copy of the entries up to an announced head. FrameError if that cannot be."""
        cursor = self.cursor
        count = head - cursor
        if not 0 < count <= self._entries:
            raise FrameError(f"{self._name} announces entry {head} on its board after {cursor}")
        start = cursor % self._entries * ENTRY
        stop = start + count * ENTRY
        if WEAK:
            fence()
        if stop <= len(self._bytes):
            data = self._bytes[start:stop].tobytes()
        else:
            data = self._bytes[start:].tobytes() + self._bytes[: stop - len(self._bytes)].tobytes()
        self.cursor = head
        if head - self._told > self._entries >> 2:
            self.tell()
        return data

    def tell(self) -> bool:
        """Lets the writer know how far this worker has read; whether that is news."""
        if self._told == self.cursor:
            return False
        if WEAK:
            fence()  # what was read has been read
        self._hall.cursors[self._place] = self._told = self.cursor
        return True

    def take_letter(self, words: list[int], at: int) -> tuple[bytes | None, int]:
        """The letter of which a piece begins at `at`, if it is complete; and where the next entry begins."""
        _, total, before, size = words[at : at + WORDS]
        body = at + WORDS
        after = body + (size + -size % ENTRY) // WORD
        if words[at] != _LETTER or not 0 < total <= _LONGEST or before != len(self._letter) or not 0 < size <= total:
            raise FrameError(f"{self._name} has written on its board what makes no sense")
        if after > len(words) or before + size > total or (before and total != self._length):
            raise FrameError(f"{self._name} has written a letter on its board that does not fit its length")
        self._length = total
        self._letter += struct.pack(f"={after - body}q", *words[body:after])[:size]
        if len(self._letter) < total:
            return None, after
        letter, self._letter = bytes(self._letter), bytearray()
        return letter, after
