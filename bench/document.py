"""Results as files, with all that is needed to tell later what they were: JSON for programs, Markdown for pages."""

from collections.abc import Sequence
from pathlib import Path

from bench.run import Measurement
from bench.table import columns_of
from megaphone.harness.machine import one_line
from megaphone.harness.provenance import Provenance, write_document


def write(path: Path, provenance: Provenance, results: Sequence[Measurement], *, complete: bool) -> None:
    """``complete`` is false when the run was interrupted or failed, and ``results`` is what there was by then."""
    write_document(path, provenance, {"complete": complete, "results": [_entry(result) for result in results]})


def _entry(result: Measurement) -> dict[str, str | float | None]:
    return {
        "name": result.name,
        "value": result.value,
        "unit": result.unit,
        "baseline": result.baseline,
        "ratio": result.ratio,
    }


def write_table(
    path: Path, provenance: Provenance, results: Sequence[Measurement], told: Sequence[str] = (), *, complete: bool
) -> None:
    """The same as a page of Markdown: where the numbers are from, a table, and what the experiments told besides.

    A run that is not complete says so on the page: whoever reads it cannot see the exit status.
    """
    head = [
        f"`{provenance.command}`",
        "",
        f"{provenance.started:%Y-%m-%d}, revision {provenance.short_revision}, {one_line(provenance.machine)}",
    ]
    if not complete:
        head += ["", "**This run did not end well**: what follows is what was measured until then."]
    blocks = [line for text in told for line in ("", "```", text, "```")]
    lines = [*head, "", *(_markdown(results) if results else ["Nothing was measured."]), *blocks]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _markdown(results: Sequence[Measurement]) -> list[str]:
    headings, rows, flush_right = columns_of(results)
    marks = ["---:" if column in flush_right else "---" for column in range(len(headings))]
    return [_row(headings), f"|{'|'.join(marks)}|", *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
