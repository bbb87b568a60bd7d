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
        description = part.describe()
        for (room, used, extra, offset), words in part.leave(bin, limit):
            yield pack(Piece(number, bin, room, used, extra, offset, description, words))
            description = description[:0]
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
    if piece.part >= len(parts) or piece.bin >= parts[piece.part].bins:
        raise ValueError(f"a piece of part {piece.part} of bin {piece.bin}, of which there is none")
    part = parts[piece.part]
    if piece.offset == 0:
        part.heed(piece.description)
    if part.come(piece.bin, (piece.room, piece.used, piece.extra, piece.offset), piece.words):
        part.arrived(piece.bin)
