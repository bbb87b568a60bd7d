"""A bin in pieces of words: how state in columns travels. Pure.

A message is an array of 64-bit words: pieces one after the other, each with six words before it that say which bin, how
many words its segment has, how many of its rows are used, where in the segment this piece belongs and how long it is,
and how many words of post-dated records follow. A bin that is larger than a message goes in several.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataflow.columns.pending import Pending
from dataflow.columns.table import Table

Words = NDArray[np.uint64]
HEAD = 6


class Piece(NamedTuple):
    """A part of a bin."""

    bin: int
    words: int  # of the whole segment
    used: int  # rows of it
    offset: int
    state: Words
    pending: Words


def depart(table: Table, pending: Pending | None, bin: int, limit: int) -> Iterator[Words]:
    """Takes a bin out, in pieces of at most `limit` words of state. Its memory is given back with the last one."""
    rows = table.segments.rows(bin)
    used = int(table.meta[bin, 2])
    none = np.empty(0, np.uint64)
    for offset in range(0, max(1, len(rows)), limit):
        state = rows[offset : offset + limit]
        last = offset + limit >= len(rows)
        posted = pending.take(bin) if last and pending is not None else None
        if len(rows) or posted is not None:
            yield _pack(Piece(bin, len(rows), used, offset, state, none if posted is None else posted))
    table.segments.clear(bin)


def _pack(piece: Piece) -> Words:
    head = np.array([piece.bin, piece.words, piece.used, piece.offset, len(piece.state), len(piece.pending)], np.uint64)
    return np.concatenate([head, piece.state, piece.pending])


def unpack(message: Words) -> Iterator[Piece]:
    """The pieces of a message; ValueError if it cannot be right."""
    at = 0
    while at < len(message):
        if at + HEAD > len(message):
            raise ValueError(f"a message of state ends in the middle of a head, at word {at} of {len(message)}")
        bin, words, used, offset, length, posted = message[at : at + HEAD].tolist()
        at += HEAD
        if at + length + posted > len(message) or offset + length > words:
            raise ValueError(f"a piece of bin {bin} does not fit into its message, or its segment")
        yield Piece(bin, words, used, offset, message[at : at + length], message[at + length : at + length + posted])
        at += length + posted


def arrive(table: Table, pending: Pending | None, piece: Piece) -> None:
    """Installs a piece; the first one of a bin makes room for all of them."""
    segments = table.segments
    if piece.bin >= table.bins or piece.words % table.stride or piece.used * table.stride > piece.words:
        raise ValueError(
            f"a piece of bin {piece.bin} with {piece.words} words and {piece.used} rows makes no sense here"
        )
    if piece.words and piece.offset == 0:
        segments.make(piece.bin, piece.words // table.stride, piece.used)
    if len(piece.state):
        segments.rows(piece.bin)[piece.offset : piece.offset + len(piece.state)] = piece.state
    if len(piece.pending):
        if pending is None or len(piece.pending) % pending.stride:
            raise ValueError(f"post-dated records of bin {piece.bin} make no sense here")
        pending.put(piece.bin, piece.pending)


def as_words(column: Any) -> Words:
    """The words of a message as received."""
    words: Words = np.asarray(column).view(np.uint64)
    return words
