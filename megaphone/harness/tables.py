"""Numbers and tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from megaphone.harness.histogram import Histogram

SELECTED = (0.9, 0.99, 0.9999, 1)  # what the paper's tables have


def number(value: float) -> str:
    """Four significant digits, thousands marked, no exponent where a person would not write one.

    >>> [number(value) for value in (0, 12345678.9, 1234.5, 0.75, 0.0001234, 1.5e-9)]
    ['0', '12,345,679', '1,234', '0.75', '0.0001234', '1.5e-09']
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def duration(seconds: float) -> str:
    """Three digits, in the unit that suits.

    >>> [duration(seconds) for seconds in (0, 0.0000125, 0.002, 0.9996, 12.345, 1234)]
    ['0 ms', '0.0125 ms', '2 ms', '1 s', '12.3 s', '1,234 s']
    """
    if seconds >= 1000:
        return f"{seconds:,.0f} s"
    return f"{seconds:.3g} s" if float(f"{seconds:.3g}") >= 1 else f"{seconds * 1000:.3g} ms"


def label(q: float) -> str:
    """How a quantile is called.

    >>> [label(q) for q in (0.5, 0.9, 0.99, 0.9999, 1)]
    ['.5', '.9', '.99', '.9999', 'max']
    """
    return "max" if q == 1 else f"{q:.12g}".lstrip("0")


def quantile_table(families: Mapping[str, Histogram], name: str, quantiles: Sequence[float] = SELECTED) -> str:
    """Latencies in ms, a row for each histogram in ns: the table beside a family of CCDFs.

    >>> some = Histogram()
    >>> some.record([1_000_000] * 95 + [30_000_000] * 5)
    >>> print(quantile_table({"256": some, "native": Histogram()}, "bins"))
    bins       .9  .99  .9999  max
    ------  -----  ---  -----  ---
    256     1.004   30     30   30
    native      -    -      -    -
    """
    rows = [
        [row, *(number(value / 1e6) if len(histogram) else "-" for value in histogram.quantiles(quantiles))]
        for row, histogram in families.items()
    ]
    return table([name, *map(label, quantiles)], rows)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] | None = None) -> str:
    """Aligned columns under headings; all but the first are set flush right, unless `right` names those that are.

    >>> print(table(["bins", "max"], [["native", "2.5"], ["256", "12"]]))
    bins    max
    ------  ---
    native  2.5
    256      12
    """
    flush_right = range(1, len(headings)) if right is None else right
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    lines = [headings, ["-" * width for width in widths], *rows]
    return "\n".join(_line(row, widths, flush_right) for row in lines)


def _line(row: Sequence[str], widths: Sequence[int], flush_right: Sequence[int]) -> str:
    cells = (
        cell.rjust(width) if column in flush_right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()
