"""A bin of Python objects in pieces of bytes: how state in rows travels. Pure.

A bin is encoded in *portions*: so many entries of its dictionary, so many of its pending records. How many follows
from how long the portions before were, so that one is about as long as a piece may be, and no worker stands still
for the encoding of a large bin. State that is no dictionary cannot be divided: it is one portion, with all of it
encoded at once. Portions that came out longer than a piece are cut.

A piece has a number (`at`), and its head says whether more of its portion follows, or more portions, or nothing. Pieces
arrive in any order, and are decoded, portion by portion, in that of their numbers. Nothing is installed before all have
come. A key that lives apart from its bin, or goes there, or comes back, travels in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from dataflow.comm import codec
from dataflow.state.pieces import Piece, pad, unpad
from dataflow.state.values import Key, Record, State, Value
from dataflow.time.order import Time

CUT, PORTION, BIN = 0, 1, 2  # what ends with a piece: nothing, a portion, the bin (or key)
NO_STATE: Final[State] = object()
Pending: TypeAlias = dict[Time, list[Record]]
Place: TypeAlias = int | tuple[Key]
"""The number of a bin; or, for a key that lives apart, the key in a tuple."""

_WHOLE, _ENTRIES, _PENDING = 0, 1, 2
_FIRST = 64  # entries in the first portion: most bins need no other


@dataclass(frozen=True, slots=True)
class Address:
    """Where a place goes: a bin, or a key of a bin that will live apart or go back into the bin."""

    bin: int
    key: tuple[Key] | None = None
    apart: bool = False

    @property
    def place(self) -> Place:
        """The place that travels."""
        return self.bin if self.key is None else self.key


def depart(to: Address, state: State, pending: Pending, limit: int) -> Iterator[Piece]:
    """A place as pieces of at most `limit` words. It may be forgotten when the last one is asked for: all of it has
    been encoded then. TypeError if something cannot be."""
    key = b"" if to.key is None else codec.encode(to.key[0])
    key_words, longest = pad(key), 8 * limit
    number = 0
    portions = _encoded(state, pending, longest)
    data = next(portions, None)
    while data is not None:
        following = next(portions, None)
        for start in range(0, len(data), longest):
            some = data[start : start + longest]
            last = PORTION if following is not None else BIN
            ends = last if start + longest >= len(data) else CUT
            head = (ends, len(some), len(key))
            yield Piece(to.bin, 0, number, head, pad(some), key=key_words, apart=to.apart)
            number += 1
        data = following


def address_of(piece: Piece) -> Address:
    """Where a piece goes."""
    if not piece.is_key:
        return Address(piece.bin)
    return Address(piece.bin, (codec.decode(unpad(piece.key, piece.head[2])),), piece.apart)


def _encoded(state: State, pending: Pending, limit: int) -> Iterator[bytes]:
    """A bin's portions, at least one, about as long as `limit` each."""
    room = [_FIRST]  # entries of a portion
    gathered: list[list[Value]] = []
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


def _divided(state: State, pending: Pending, room: list[int]) -> Iterator[tuple[int, list[Value]]]:
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
        self.state: State = NO_STATE
        self.pending: list[tuple[Time, list[Record]]] = []
        self._early: dict[int, tuple[int, bytes]] = {}  # pieces that came before their turn
        self._next = 0
        self._cut: list[bytes] = []  # of the portion at hand

    def add(self, piece: Piece) -> bool:
        """Takes a piece; whether that completes the bin."""
        ends, length, _ = piece.head
        if ends not in (CUT, PORTION, BIN):
            raise ValueError(f"a piece of state in rows ends with {ends}, which means nothing")
        if piece.at < self._next or piece.at in self._early:
            raise ValueError(f"piece {piece.at} of bin {piece.bin} comes a second time")
        self._early[piece.at] = (ends, unpad(piece.words, length))
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
