"""The hall: memory that the workers of one host share, through which they speak to each other without the kernel.

Each worker has a *slot*. In the hall there are

- a *board* for each worker, on which it writes what concerns all, once; everybody reads it (`board`);
- a *ring* for each ordered pair, a stream of bytes from one to the other (`ring`);
- a *bell* for each worker: a word that says whether it wants to be woken when something was written for it. The bell
  itself is a byte through the socket that every two workers have anyway, so a worker sleeps as it always did.

Every word has one writer (but for flags, which one sets and another clears), and positions only grow. What is read
here was written by a peer, who is trusted no more than over a connection: readers copy, then check.

    counts      how far boards are written, and which writers wait for room on theirs: one look for all peers
    bells       who wants to be woken, and for what
    cursors     by writer and reader, how far a board is read
    heads       by reader and writer, how far a ring is written: one look for all rings that lead to a worker
    tails       by writer and reader, how far a ring is read
    wants       by reader and writer, whether the writer waits for room in a ring
    boards, rings
"""

from __future__ import annotations

import _thread
import mmap
import platform
from collections.abc import Callable
from dataclasses import dataclass

WORD = 8
ENTRY = 4 * WORD  # of a board
_BOARD = 1 << 19  # bytes of a board, at most
_RINGS = 1 << 26  # bytes of all rings together, about
_LEAST, _MOST = 1 << 13, 1 << 18  # bytes of a ring

_lock = _thread.allocate_lock()
_lock.acquire()


def fence() -> None:
    """What was written before is visible before anything is read that is read after.

    A processor may hold a write back while it reads on. Whoever says "wake me" and then looks once more, and whoever
    writes and then looks whether somebody wants to be woken, must both be seen by the other. Giving up a lock and
    taking it again is a full barrier.
    """
    _lock.release()
    _lock.acquire()


WEAK = platform.machine() not in ("x86_64", "AMD64", "i686")
"""Whether a fence is needed between the content and the word that announces it as well: these processors show writes in
their order, and read in theirs."""


@dataclass(frozen=True, slots=True)
class HallPlan:
    """Where everything lies, for so many workers. The same on all of them. All sizes are powers of two."""

    slots: int
    board: int = _BOARD  # bytes
    ring: int = 0  # bytes; 0: as large as there is room for

    @property
    def ring_size(self) -> int:
        """Bytes of a ring."""
        if self.ring:
            return self.ring
        share = _RINGS // max(1, self.slots * self.slots)
        return min(_MOST, max(_LEAST, 1 << max(0, share.bit_length() - 1)))

    @property
    def words(self) -> int:
        """Words before the boards, in whole pages."""
        words = 3 * self.slots + 4 * self.slots * self.slots
        return words + -words % (mmap.PAGESIZE // WORD)

    @property
    def size(self) -> int:
        """Bytes of the whole. What is never written to costs nothing."""
        return self.words * WORD + self.slots * self.board + self.slots * self.slots * self.ring_size


class Hall:
    """The hall as the worker in one slot sees it."""

    def __init__(self, plan: HallPlan, memory: memoryview, slot: int) -> None:
        """`memory`: of that size, all zeros when the first worker enters."""
        if len(memory) < plan.size:
            raise ValueError(f"a hall of {plan.size} bytes in a memory of {len(memory)}")
        self.plan = plan
        self.slot = slot
        self.memory = memory
        n = self.slots = plan.slots
        words = memory[: plan.words * WORD].cast("q")
        self.counts = words[: 2 * n]  # heads of boards, then flags of writers that wait
        self.bells = words[2 * n : 3 * n]
        tables = words[3 * n :]
        self.cursors = tables[: n * n]  # [writer * n + reader]
        self.heads = tables[n * n : 2 * n * n]  # [reader * n + writer]
        self.tails = tables[2 * n * n : 3 * n * n]  # [writer * n + reader]
        self.wants = tables[3 * n * n : 4 * n * n]  # [reader * n + writer]
        self.my_heads = self.heads[slot * n : (slot + 1) * n]
        self.blocked: dict[Callable[[], None], None] = {}  # what looks for room, where this worker waits for some

    def board(self, slot: int) -> memoryview:
        """The board of the worker in that slot, in words."""
        start = self.plan.words * WORD + slot * self.plan.board
        return self.memory[start : start + self.plan.board].cast("q")

    def ring(self, writer: int, reader: int) -> memoryview:
        """The bytes of a ring."""
        plan = self.plan
        start = plan.words * WORD + self.slots * plan.board + (writer * self.slots + reader) * plan.ring_size
        return self.memory[start : start + plan.ring_size]


def make_hall(plan: HallPlan) -> memoryview | None:
    """Memory for those who will be forked. None where there is not enough."""
    try:
        return memoryview(mmap.mmap(-1, plan.size))
    except OSError:
        return None
