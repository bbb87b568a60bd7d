"""Results as a table for people."""

from collections.abc import Sequence

from bench.run import Measurement
from megaphone.harness import tables

HEADINGS = ("name", "value", "unit", "baseline", "ratio")
_NUMBERS = (1, 3, 4)  # columns set flush right


def table(results: Sequence[Measurement]) -> str:
    """Aligned columns under headings; those for baselines are left out when no result has one.

    >>> print(table([Measurement("map", 6e6, "rows/s", baseline=8e6), Measurement("call", 0.0512, "µs")]))
    name      value  unit     baseline  ratio
    ----  ---------  ------  ---------  -----
    map   6,000,000  rows/s  8,000,000   0.75
    call     0.0512  µs
    """
    return tables.table(*columns_of(results))


def columns_of(results: Sequence[Measurement]) -> tuple[Sequence[str], Sequence[Sequence[str]], Sequence[int]]:
    """Headings, rows, and the numbers of the columns that are set flush right."""
    columns = len(HEADINGS) if any(result.baseline is not None for result in results) else 3
    return HEADINGS[:columns], [_cells(result)[:columns] for result in results], _NUMBERS


def _cells(result: Measurement) -> tuple[str, ...]:
    baseline = "" if result.baseline is None else tables.number(result.baseline)
    ratio = "" if result.ratio is None else f"{result.ratio:.3g}"
    return (result.name, tables.number(result.value), result.unit, baseline, ratio)
