"""Text for people: tables, sizes, ages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def make_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: int = 0) -> Iterator[str]:
    """Lines with columns of equal width; in the first `right` of them text ends together, in the others it begins so.

    >>> print(*make_table(["n", "what"], [["1", "one"], ["10", "ten"]], right=1), sep="\\n")
     n  what
     1  one
    10  ten
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = [
            cell.rjust(width) if at < right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def duration_text(seconds: float) -> str:
    """Seconds for people: two of a unit at least.

    >>> duration_text(7.4), duration_text(150), duration_text(9000), duration_text(1e6)
    ('7 s', '2 min', '2 h', '11 d')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{seconds:.0f} s"
