"""Naming the record at which a function of the program's raised, when it has.

Nothing is counted on the way: an iterator knows how many items it has left, and so which one it gave last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import length_hint
from typing import Protocol, TypeVar

from dataflow.time.order import Time

RECORD, TIME, KEY = "at the record ", "at the time ", "for the key "
"""How the notes begin. Two failures with one note of the first kind are failures at one record."""

_LONGEST = 200  # characters of a record

T_co = TypeVar("T_co", covariant=True)


class Items(Protocol[T_co]):
    """A batch, or a dictionary: anything that has a length and can be iterated over again."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


def name_record(error: BaseException, record: object, *, time: Time | None = None) -> None:
    """Adds notes that name a record (the innermost that is named stays), and its time."""
    if not _has(error, RECORD):
        error.add_note(RECORD + shortened(record))
    if time is not None:
        name_time(error, time)


def name_time(error: BaseException, time: Time) -> None:
    """Adds a note that names a time, if none has."""
    if not _has(error, TIME):
        error.add_note(f"{TIME}{time!r}")


def name_key(error: BaseException, key: object) -> None:
    """Adds a note that names a key."""
    error.add_note(KEY + shortened(key))


def name_last(error: BaseException, items: Items[object], left: Iterator[object]) -> None:
    """Names the record that an iterator over these gave last, if that can be known."""
    found = last_of(items, left)
    if found:
        name_record(error, found[0])


def last_of(items: Items[T_co], left: Iterator[object]) -> list[T_co]:
    """In a list, what an iterator over these gave last; an empty list if that cannot be known.

    >>> left = iter("abcd")
    >>> next(left), next(left), last_of("abcd", left)
    ('a', 'b', ['b'])
    """
    at = len(items) - length_hint(left, len(items)) - 1
    return list(islice(iter(items), at, at + 1)) if at >= 0 else []


def shortened(record: object) -> str:
    """The first characters of what a record looks like, on one line.

    >>> shortened((1, "two")), len(shortened("x" * 1000))
    ("(1, 'two')", 200)
    """
    try:
        text = repr(record)
    except Exception as error:  # of the program's own class; the error that is being told matters more
        text = f"<a {type(record).__qualname__}, whose repr raises {type(error).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _has(error: BaseException, start: str) -> bool:
    return any(str(note).startswith(start) for note in getattr(error, "__notes__", ()))
