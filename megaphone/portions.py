"""A bin of Python objects in pieces of bytes: how state in rows travels. Pure.

A bin is encoded in *portions*: so many entries of its dictionary, so many of its pending records. How many follows
from how long the portions before were, so that one is about as long as a message may be, and no worker stands still
for the encoding of a large bin. State that is no dictionary cannot be divided: it is one portion, with all of it
encoded at once. Portions that came out longer than a message are cut.

A piece has a number, and says whether more of its portion follows, or more portions, or nothing. Pieces arrive in any
order, and are decoded, portion by portion, in that of their numbers. Nothing is installed before all have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from dataflow import codec
from dataflow.order import Time

CUT, PORTION, BIN = 0, 1, 2  # what ends with a piece: nothing, a portion, the bin
NO_STATE: Any = object()
Pending = dict[Time, list[Any]]

_WHOLE, _ENTRIES, _PENDING = 0, 1, 2
_FIRST = 64  # entries in the first portion: most bins need no other


class Piece(NamedTuple):
    """A piece of a bin."""

    bin: int
    number: int
    ends: int
    data: bytes


def depart(bin: int, state: Any, pending: Pending, limit: int) -> Iterator[Piece]:
    """A bin as pieces of at most `limit` bytes. The bin may be forgotten when the last one is asked for: all of it has
    been encoded then. TypeError if something cannot be."""
    number = 0
    portions = _encoded(state, pending, limit)
    data = next(portions)
    while data is not None:
        following = next(portions, None)
        for start in range(0, len(data), limit):
            last = PORTION if following is not None else BIN
            yield Piece(bin, number, last if start + limit >= len(data) else CUT, data[start : start + limit])
            number += 1
        data = following  # type: ignore[assignment]


def _encoded(state: Any, pending: Pending, limit: int) -> Iterator[bytes]:
    """A bin's portions, at least one, about as long as `limit` each."""
    room = [_FIRST]  # entries of a portion
    gathered: list[Any] = []
    count = 0
    for entries, part in _divided(state, pending, room):
        gathered.append(part)
        count += entries
        if count >= room[0]:
            data = codec.encode(gathered)
            room[0] = max(1, min(4 * count, count * limit // len(data)))
            yield data
            gathered, count = [], 0
    if gathered:
        yield codec.encode(gathered)


def _divided(state: Any, pending: Pending, room: list[int]) -> Iterator[tuple[int, Any]]:
    """Parts of a bin, none with more entries than there is room for; and how many those are."""
    if type(state) is dict:
        entries = iter(state.items())
        yield 0, [_ENTRIES, {}]
        while part := dict(islice(entries, room[0])):
            yield len(part), [_ENTRIES, part]
    elif state is not NO_STATE:
        yield room[0], [_WHOLE, state]
    for time, records in pending.items():
        start = 0
        while start < len(records):
            some = records[start : start + room[0]]
            yield len(some), [_PENDING, time, some]
            start += len(some)


class Arriving:
    """A bin of which not every piece has come."""

    def __init__(self) -> None:
        self.state: Any = NO_STATE
        self.pending: list[tuple[Time, list[Any]]] = []
        self._early: dict[int, tuple[int, bytes]] = {}  # pieces that came before their turn
        self._next = 0
        self._cut: list[bytes] = []  # of the portion at hand

    def add(self, piece: Piece) -> bool:
        """Takes a piece; whether that completes the bin."""
        self._early[piece.number] = (piece.ends, piece.data)
        while self._next in self._early:
            ends, data = self._early.pop(self._next)
            self._next += 1
            self._cut.append(data)
            if ends != CUT:
                whole, self._cut = b"".join(self._cut), []
                self._decode(whole)
            if ends == BIN:
                return True
        return False

    def _decode(self, data: bytes) -> None:
        for kind, *content in codec.decode(data):
            if kind == _WHOLE:
                (self.state,) = content
            elif kind == _PENDING:
                self.pending.append((content[0], content[1]))
            elif self.state is NO_STATE:
                (self.state,) = content
            else:
                self.state.update(content[0])
