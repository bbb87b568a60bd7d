"""A piece of state in transit: one format for rows and columns, for bins and single keys. Pure.

State leaves a store in pieces of bounded length and enters another, on another worker or from a file. A piece belongs
to one *part* of the store (its table, its post-dated records, one side of a join) and says where in that part it goes,
so that pieces may arrive in any order. A message is one array of 64-bit words: pieces, one after the other, each a head
of ten words, the key (if it is a single key that travels), the part's description, and the state itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dataflow.state.arrays import Words as Words

HEAD = 10  # words
_NO_WORDS: Words = np.empty(0, np.uint64)
_LARGEST = (1 << 63) - 1  # of any number in a head


class Piece(NamedTuple):
    """A piece of one part of a bin, or of a single key.

    `head` has three numbers that only the part understands. `apart`: the key will live apart from its bin; without it
    the key goes back into its bin.
    """

    bin: int
    part: int
    at: int  # where in the part the piece belongs: a number or an offset, as the part counts
    head: tuple[int, int, int]
    words: Words
    description: Words = _NO_WORDS  # what must be known of the words besides themselves
    key: Words = _NO_WORDS  # of a single key; a bin has none
    apart: bool = False

    @property
    def is_key(self) -> bool:
        """Whether this belongs to a single key, and not to a whole bin."""
        return len(self.key) > 0

    @property
    def returns(self) -> bool:
        """Whether this belongs to a key that goes back into its bin."""
        return len(self.key) > 0 and not self.apart


def _fresh(count: int) -> Words:
    return np.empty(count, np.uint64)


def pack(piece: Piece, place: Callable[[int], Words] = _fresh) -> Words:
    """One piece as words, where `place` makes room for them. Copies the state, which its store may forget then."""
    numbers = (
        piece.bin, piece.part, piece.at, *piece.head, piece.apart,
        len(piece.key), len(piece.description), len(piece.words),
    )  # fmt: skip
    key, description = HEAD + len(piece.key), HEAD + len(piece.key) + len(piece.description)
    packed = place(description + len(piece.words))
    packed[:HEAD] = numbers
    packed[HEAD:key] = piece.key
    packed[key:description] = piece.description
    packed[description:] = piece.words
    return packed


def unpack(message: Words) -> Iterator[Piece]:
    """The pieces of a message; ValueError if they cannot be right."""
    at = 0
    while at < len(message):
        if at + HEAD > len(message):
            raise ValueError(f"a message of state ends in the middle of a head, at word {at} of {len(message)}")
        bin, part, where, one, two, three, apart, keyed, described, length = message[at : at + HEAD].tolist()
        if max(bin, part, where, one, two, three, keyed, described, length) > _LARGEST or apart > 1:
            raise ValueError(f"a message of state has a number in its head, at word {at}, that no head has")
        key = at + HEAD
        description = key + keyed
        words = description + described
        end = words + length
        if end > len(message):
            raise ValueError(
                f"a piece of state says that it has {keyed + described + length} words, and {len(message) - key} follow"
            )
        yield Piece(
            bin, part, where, (one, two, three), message[words:end], message[description:words],
            message[key:description], bool(apart),
        )  # fmt: skip
        at = end


def join(packed: Iterable[Words]) -> Words:
    """Packed pieces as one message."""
    return np.concatenate(list(packed))


def pad(data: bytes) -> Words:
    """Bytes as words, filled up with zeros.

    >>> len(pad(b"nine byte"))
    2
    """
    return np.frombuffer(data + bytes(-len(data) % 8), np.uint64)


def unpad(words: Words, length: int) -> bytes:
    """The bytes that were made words; ValueError if there cannot be so many.

    >>> unpad(pad(b"nine byte"), 9)
    b'nine byte'
    """
    if not 0 <= length <= 8 * len(words) < length + 8:
        raise ValueError(f"{len(words)} words of state are not {length} bytes")
    return words.tobytes()[:length]
