"""A bin in pieces of words: how state in columns travels. Pure.

What belongs to a bin lies in segments: of a table, of post-dated records, of a join's rows. Each is a *part*, with a
number. A message is one piece of one part of one bin: eight words that say which, how many rows the segment has room
for, how many it uses, its fourth number of `meta`, where in it this piece belongs, how long its description is and how
long it is itself; then the part's description of its rows (a join's types of columns), and the words themselves. A
segment that is larger than a message goes in several; only the first describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataflow.columns.kernels import RECORDS, ROOM, USED

Words = NDArray[np.uint64]
HEAD = 8


class Piece(NamedTuple):
    """A piece of a part of a bin."""

    part: int
    bin: int
    room: int
    used: int
    extra: int
    offset: int
    description: Words
    words: Words


def depart(parts: Sequence[Any], bin: int, limit: int) -> Iterator[Words]:
    """Takes a bin out, as messages of at most `limit` words of state. Memory is given back part by part."""
    for number, part in enumerate(parts):
        segments = part.segments
        rows = segments.contents(bin)
        if len(rows):
            room, used, extra = (int(segments.meta[bin, column]) for column in (ROOM, USED, RECORDS))
            extra = extra if segments.packed else 0  # a count of what was applied here, which stays here
            description = part.describe()
            for offset in range(0, len(rows), limit):
                yield pack(Piece(number, bin, room, used, extra, offset, description, rows[offset : offset + limit]))
                description = description[:0]
        segments.clear(bin)
        part.departed(bin)


def pack(piece: Piece) -> Words:
    """A message."""
    *numbers, description, words = piece
    return np.concatenate([np.array([*numbers, len(description), len(words)], np.uint64), description, words])


def unpack(message: Words) -> Piece:
    """The piece in a message; ValueError if it cannot be right."""
    if len(message) < HEAD:
        raise ValueError(f"a message of state with {len(message)} words has not even a head")
    part, bin, room, used, extra, offset, described, length = message[:HEAD].tolist()
    if len(message) != HEAD + described + length:
        raise ValueError(f"a message of state says {described + length} words, and has {len(message) - HEAD}")
    start = HEAD + described
    return Piece(part, bin, room, used, extra, offset, message[HEAD:start], message[start:])


def arrive(parts: Sequence[Any], piece: Piece) -> None:
    """Installs a piece. They come in any order: the first makes room for all, and the last completes the bin."""
    if piece.part >= len(parts) or piece.bin >= parts[piece.part].segments.bins:
        raise ValueError(f"a piece of part {piece.part} of bin {piece.bin}, of which there is none")
    part, bin = parts[piece.part], piece.bin
    segments = part.segments
    length = (piece.used if segments.packed else piece.room) * segments.stride
    if piece.offset + len(piece.words) > length:
        raise ValueError(f"a piece of bin {bin} does not fit into its segment of {length} words")
    if bin not in segments.missing:
        segments.make(bin, piece.room, piece.used)
        segments.missing[bin] = length
        if segments.packed:
            segments.meta[bin, RECORDS] = piece.extra  # else it counts what is applied here
    if piece.offset == 0:
        part.heed(piece.description)
    segments.contents(bin)[piece.offset : piece.offset + len(piece.words)] = piece.words
    segments.missing[bin] -= len(piece.words)
    if not segments.missing[bin]:
        del segments.missing[bin]
        part.arrived(bin)
