"""Text for people to read. Of another process: nothing in it can move a cursor, colour a terminal or fill a screen."""

from __future__ import annotations

import math

_KEPT = frozenset("\n\t")
_MOST = 4000  # characters of one text: an error message, not a book


def plain(text: str, most: int = _MOST) -> str:
    """The text without what a terminal would obey, and no longer than `most` characters.

    Control characters (but line ends and tabs), marks that change the direction of writing and everything else that
    does not print are shown as they would be written in a program.

    >>> plain("a \\x1b[31mred\\x07 text"), plain("x" * 50, most=10)
    ('a \\\\x1b[31mred\\\\x07 text', 'xxxxxxxxxx... (40 characters more)')
    """
    more = f"... ({len(text) - most:,} characters more)" if len(text) > most else ""
    text = text[:most]
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in _KEPT else c.encode("unicode_escape").decode("ascii") for c in text)
    return text + more


def show(value: object, most: int = 200) -> str:
    """A value of a peer's as an error message names it. Never raises: some values have no `repr` (a number of a million
    digits, a class of the program's whose fields are not what it expects)."""
    try:
        return plain(repr(value), most)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def size_text(size: float) -> str:
    """Bytes for people.

    >>> size_text(999), size_text(1500), size_text(384_000_000)
    ('999 B', '1.5 kB', '384.0 MB')
    """
    if size < 1000:
        return f"{size:.0f} B"
    power = min(4, int(math.log(size, 1000)))
    return f"{size / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"
