"""Reuse: what bins leave behind in an array of segments is kept for a while, with its memory, for bins that arrive.

A bin that arrives needs memory. Memory that was never touched is slow (`prefault` says how slow), and so is memory that
was given back, since the system may have handed it to its host meanwhile. So what bins leave behind is kept for
`SECONDS`, as allocators do, but no more than `MOST` of it: on a host where all workers run together the same state
would otherwise be there twice. Then a thread lets the places go, one by one; it lives as long as there is anything
to let go. When nothing is kept, and no bin has left for as long, the thread asks the array whether it is empty
altogether.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import NamedTuple

MOST = 128 << 20  # bytes of an array
SECONDS = 10.0
_NAP = 0.25  # seconds after which the thread looks whether anybody is left
_BREATH = 0.001  # seconds between two places that are let go: the worker goes on in between


class FreePlace(NamedTuple):
    """Where a segment was. `bin`: the only bin that may have this place, since it is its home."""

    first: int
    room: int
    size: int  # bytes
    bin: int | None


class FreePlaces:
    """The free places of one array.

    Two methods of the array are called, with the lock, by the thread or by `clear`: `let_go` with a place that nobody
    will take any more, and `settle` when nothing is kept and no bin has left for a while.

    `lock`: whoever takes a place, from here or elsewhere, holds it until the array knows whose the place is.
    """

    def __init__(self, let_go: Callable[[FreePlace], None], settle: Callable[[], None]) -> None:
        self._let_go, self._settle = weakref.WeakMethod(let_go), weakref.WeakMethod(settle)
        self.lock = threading.RLock()
        self._left = 0.0  # when something left last
        self._since: dict[FreePlace, float] = {}  # in the order in which they came
        self._free: dict[int, dict[FreePlace, None]] = {}  # by room, in that order, those that any bin may have
        self._own: dict[int, FreePlace] = {}  # by bin, those that are its own
        self._size = 0  # invariant: the sum of all sizes, at most MOST
        self._thread: threading.Thread | None = None  # invariant: there is one while anything is kept

    def watch(self) -> None:
        """Called when a bin has left: starts the thread if there is none."""
        with self.lock:
            self._left = time.monotonic()
            if self._thread is None:
                here = weakref.ref(self)
                self._thread = threading.Thread(target=_watch, args=(here,), name="memory kept", daemon=True)
                self._thread.start()

    def keep(self, place: FreePlace) -> bool:
        """Keeps a place; whether there is room for it."""
        with self.lock:
            if place in self._since:  # a bin was made anew at its home, and has left it again
                self._remove(place)
            if self._size + place.size > MOST:
                return False
            self._since[place] = time.monotonic()
            self._size += place.size
            if place.bin is None:
                self._free.setdefault(place.room, {})[place] = None
            else:
                self._own[place.bin] = place
            self.watch()
        return True

    def take(self, room: int, bin: int) -> int | None:
        """A place for a bin: its own, or the one that was left last; None if there is none."""
        with self.lock:
            place = self._own.get(bin)
            if place is None and (free := self._free.get(room)):
                place = next(reversed(free))
            if place is None:
                return None
            self._remove(place)
            return place.first

    def clear(self) -> None:
        """Lets everything go now."""
        while self._let_one_go(float("inf")):
            pass
        with self.lock:
            self._ask()

    def _remove(self, place: FreePlace) -> None:
        del self._since[place]
        self._size -= place.size
        if place.bin is None:
            del self._free[place.room][place]
        else:
            del self._own[place.bin]

    def _let_one_go(self, now: float) -> bool:
        """Lets the oldest place go if its time is over; whether it was."""
        with self.lock:
            place, since = next(iter(self._since.items()), (None, 0.0))
            if place is None or since + SECONDS > now:
                return False
            self._remove(place)
            let_go = self._let_go()
            if let_go is not None:
                let_go(place)
        return True

    def _ask(self) -> None:
        settle = self._settle()
        if settle is not None:
            settle()

    def _is_over(self, now: float) -> bool:
        """Whether the thread has nothing more to do; if so it ends, and another will begin when there is."""
        with self.lock:
            over = not self._since and self._left + SECONDS <= now
            if over:
                self._ask()
                self._thread = None
            return over


def _watch(kept: weakref.ref[FreePlaces]) -> None:
    """The thread. It keeps nobody alive: an array that is gone needs it no more."""
    while (warm := kept()) is not None and not warm._is_over(time.monotonic()):
        went = warm._let_one_go(time.monotonic())
        del warm
        time.sleep(_BREATH if went else _NAP)
