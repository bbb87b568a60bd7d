"""What PostgreSQL says of changes: its replication protocol, and the messages of its plugin `pgoutput` (version 1).
Pure: bytes in, transactions out. (PostgreSQL's documentation, 55.4 and 55.9.)"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dataflow.values import Value

Load = Callable[[int, bytes], Value]
"""From the number of a type and a value's text to the value."""


class RowChange(NamedTuple):
    """What became of a row."""

    kind: Literal["insert", "update", "delete", "truncate"]
    table: str  # with its schema: "public.orders"
    new: dict[str, Value] | None  # the row afterwards
    old: dict[str, Value] | None  # the row before: its key, or all of it; None if its key is the same


@dataclass(frozen=True)
class Transaction:
    """All changes of one transaction, in order."""

    end: int  # the position behind it
    changes: list[RowChange]


@dataclass(frozen=True)
class _Relation:
    name: str
    columns: list[tuple[str, int, bool]]  # (name, number of the type, whether it is in the key)


class PgoutputError(Exception):
    """Bytes that are not what they should be."""


@dataclass
class Changes:
    """Messages of the plugin, one after the other."""

    load: Load
    inside: bool = False  # a transaction that has not ended
    _relations: dict[int, _Relation] = field(default_factory=dict)
    _changes: list[RowChange] = field(default_factory=list)

    def feed(self, message: bytes) -> Transaction | None:
        """A transaction that ends with a message, or None."""
        reader = _Bytes(message)
        kind = reader.letter()
        if kind == "B":
            self._changes, self.inside = [], True
        elif kind == "C":
            self.inside = False
            reader.number(1), reader.number(8)
            return Transaction(reader.number(8), self._changes)
        elif kind == "R":
            self._relation(reader)
        elif kind == "I":
            relation = self._relations[reader.number(4)]
            reader.letter()
            self._changes.append(RowChange("insert", relation.name, self._row(reader, relation), None))
        elif kind == "U":
            self._update(reader)
        elif kind == "D":
            relation = self._relations[reader.number(4)]
            old = self._row(reader, relation, key=reader.letter() == "K")
            self._changes.append(RowChange("delete", relation.name, None, old))
        elif kind == "T":
            count, _ = reader.number(4), reader.number(1)
            names = [self._relations[reader.number(4)].name for _ in range(count)]
            self._changes += [RowChange("truncate", name, None, None) for name in names]
        elif kind not in "YOM":  # types, origins, and messages of others
            raise PgoutputError(f"a message of kind {kind!r}")
        return None

    def _relation(self, reader: _Bytes) -> None:
        number = reader.number(4)
        name = f"{reader.text()}.{reader.text()}"
        reader.letter()
        columns = []
        for _ in range(reader.number(2)):
            key, column, kind, _ = reader.number(1), reader.text(), reader.number(4), reader.number(4)
            columns.append((column, kind, bool(key & 1)))
        self._relations[number] = _Relation(name, columns)

    def _update(self, reader: _Bytes) -> None:
        relation = self._relations[reader.number(4)]
        letter, old = reader.letter(), None
        if letter in "KO":
            old = self._row(reader, relation, key=letter == "K")
            reader.letter()
        new = self._row(reader, relation, before=old or {})
        self._changes.append(RowChange("update", relation.name, new, old))

    def _row(
        self, reader: _Bytes, relation: _Relation, key: bool = False, before: dict[str, Value] | None = None
    ) -> dict[str, Value]:
        """A row by column. Of a large value that has not changed nothing is said: it is taken from the row before, if
        that is known, and left out if not."""
        row: dict[str, Value] = {}
        count = reader.number(2)
        if count != len(relation.columns):
            raise PgoutputError(f"{count} values for the {len(relation.columns)} columns of {relation.name}")
        for name, kind, in_key in relation.columns:
            letter = reader.letter()
            if letter == "t":
                row[name] = self.load(kind, reader.take(reader.number(4)))
            elif letter == "n":
                row[name] = None
            elif letter == "u" and before and name in before:
                row[name] = before[name]
            if key and not in_key:
                row.pop(name, None)  # only the key was sent: the others are empty, and not null
        return row


class _Bytes:
    """Reads a message from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def take(self, count: int) -> bytes:
        piece = self._data[self._place : self._place + count]
        if len(piece) < count:
            raise PgoutputError("a message that is not whole")
        self._place += count
        return piece

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def letter(self) -> str:
        return self.take(1).decode("ascii")

    def text(self) -> str:
        end = self._data.index(b"\0", self._place)
        text = self._data[self._place : end].decode()
        self._place = end + 1
        return text


class Keepalive(NamedTuple):
    """The server says where it is."""

    end: int
    reply: bool  # whether it wants to know where we are


def parse_copy(data: bytes) -> Keepalive | bytes:
    """What came on a replication connection: a message of the plugin, or the server's own."""
    if data[:1] == b"w":
        return data[25:]
    if data[:1] == b"k":
        end, _, reply = struct.unpack(">qqb", data[1:18])
        return Keepalive(end, bool(reply))
    raise PgoutputError(f"a message that begins with {data[:1]!r}")


def status_update(position: int) -> bytes:
    """Says that everything before a position is durable here."""
    return b"r" + struct.pack(">qqqqb", position, position, position, 0, 0)


def parse_position(text: str) -> int:
    """A position as a number.

    >>> parse_position("16/B374D848") == 0x16B374D848
    True
    """
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def show_position(position: int) -> str:
    """A position as PostgreSQL writes it.

    >>> show_position(0x16B374D848)
    '16/B374D848'
    """
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
