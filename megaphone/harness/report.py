"""One run as one HTML page that needs nothing else: what was found, the plots, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from megaphone.harness.machine import one_line
from megaphone.harness.outcome import Outcome
from megaphone.harness.provenance import Provenance
from megaphone.harness.tables import label, number
from megaphone.harness.timeline import QUANTILES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; }
img { max-width: 100%; display: block; margin: 1em 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9em; }
th, td { padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #e6e6e6; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { color: #555; font-weight: 600; border-bottom-color: #999; }
.about { color: #555; font-size: 0.9em; } .about code { white-space: pre-wrap; }
.verdict { padding: 0.6em 1em; background: #e9f4ee; border-left: 4px solid #009E73; }
.verdict.bad { background: #fbeee6; border-left-color: #D55E00; }
details { margin-top: 1em; } summary { cursor: pointer; color: #0072B2; }
"""


def figures_of(outcome: Outcome, title: str, caption: str) -> dict[str, Figure]:
    """The plots of a run, by name: timeline, ccdf, memory, and if there were migrations latency-against-duration."""
    from megaphone.harness import plots

    figures = {
        "timeline": plots.timeline(outcome, title, caption),
        "ccdf": plots.ccdf(
            {
                "all after the warm-up" if outcome.warmup else "all": outcome.total,
                **{
                    f"during {i}. {migration.episode.name}": migration.during
                    for i, migration in enumerate(outcome.migrations, 1)
                },
            },
            f"{title}: how many records were slower",
            caption,
        ),
        "memory": plots.memory(outcome, f"{title}: memory of each worker", caption),
    }
    if ended := plots.points(outcome):
        figures["latency-against-duration"] = plots.latency_against_duration(ended, f"{title}: migrations", caption)
    return figures


def write_report(
    path: Path,
    outcome: Outcome,
    provenance: Provenance,
    title: str,
    *,
    figures: dict[str, Figure] | None = None,
    notes: Sequence[str] = (),
) -> Path:
    """Writes the page; `figures` are the plots to show (those of `figures_of`), `notes` paragraphs below the verdict.

    Returns the path.
    """
    from megaphone.harness.plots import data_uri

    shown = figures if figures is not None else figures_of(outcome, title, provenance.summary())
    pictures = "\n".join(f'<img alt="{escape(name)}" src="{data_uri(figure)}">' for name, figure in shown.items())
    headings, *rows = outcome.latencies()
    instant = "it was due" if outcome.since == "due" else "its epoch ended, when it was to be sent"
    since = f"Latency of each record, from when {instant}"
    body = f"""\
<h1>{escape(title)}</h1>
{_about(provenance)}
<p class="verdict{"" if outcome.sustained else " bad"}">{escape(outcome.statement)}.</p>
{"".join(f"<p>{escape(note)}</p>" for note in notes)}
{pictures}
<h2>{since}</h2>
{_table(headings, rows)}
<h2>Peak memory</h2>
{_memory(outcome)}
<details><summary>The timeline as numbers, in ms</summary>
{_timeline(outcome)}
</details>
"""
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}</body></html>\n",
        encoding="utf-8",
    )
    return path


def _about(provenance: Provenance) -> str:
    return (
        f'<p class="about"><code>{escape(provenance.command)}</code><br>'
        f"{provenance.started:%Y-%m-%d %H:%M} UTC, revision <code>{escape(provenance.short_revision)}</code>, "
        f"{escape(one_line(provenance.machine))}, {escape(provenance.machine['platform'])}</p>"
    )


def _memory(outcome: Outcome) -> str:
    rows = [
        [f"worker {worker}", f"{sizes[0] / 2**20:,.0f} MiB", f"{max(sizes) / 2**20:,.0f} MiB"]
        for worker, (_, sizes) in outcome.memory.items()
        if sizes
    ]
    return _table(["", "at the start", "at most"], rows)


def _timeline(outcome: Outcome) -> str:
    rows = [[f"{at:g} s", *(number(value / 1e6) for value in values)] for at, values in outcome.timeline.rows()]
    return _table(["due from", *(label(q) for q in QUANTILES)], rows)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
