"""Results as a table for people."""

from collections.abc import Sequence

from bench.run import Result

HEADINGS = ("name", "value", "unit", "baseline", "ratio")
_NUMBERS = (1, 3, 4)  # columns set flush right


def table(results: Sequence[Result]) -> str:
    """Aligned columns under headings; those for baselines are left out when no result has one.

    >>> print(table([Result("map", 6e6, "rows/s", baseline=8e6), Result("call", 0.0512, "µs")]))
    name      value  unit     baseline  ratio
    ----  ---------  ------  ---------  -----
    map   6,000,000  rows/s  8,000,000   0.75
    call     0.0512  µs
    """
    columns = len(HEADINGS) if any(result.baseline is not None for result in results) else 3
    rows = [HEADINGS[:columns], *(_cells(result)[:columns] for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(columns)]
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join(_line(row, widths) for row in rows)


def number(value: float) -> str:
    """Four significant digits, thousands marked, no exponent where a person would not write one.

    >>> [number(value) for value in (0, 12345678.9, 1234.5, 0.75, 0.0001234, 1.5e-9)]
    ['0', '12,345,679', '1,234', '0.75', '0.0001234', '1.5e-09']
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _cells(result: Result) -> tuple[str, ...]:
    baseline = "" if result.baseline is None else number(result.baseline)
    ratio = "" if result.ratio is None else f"{result.ratio:.3g}"
    return (result.name, number(result.value), result.unit, baseline, ratio)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()
