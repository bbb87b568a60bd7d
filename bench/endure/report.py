"""A page about a run that endured: verdicts, curves with what happened, and a list of that."""

from __future__ import annotations

import io
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bench.endure.judging import Answer
from bench.endure.watching import Glance, Lookout
from megaphone.harness.machine import one_line
from megaphone.harness.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 66em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; }
img { max-width: 100%; display: block; margin: 1em 0; }
table { border-collapse: collapse; font-size: 0.9em; }
th, td { padding: 0.2em 0.8em; text-align: left; border-bottom: 1px solid #e6e6e6; vertical-align: top; }
.good { color: #00734f; } .bad { color: #b34700; font-weight: 600; } .about { color: #555; font-size: 0.9em; }
"""
_COLOURS = {
    "migration": "#0072B2", "scaling": "#009E73", "savepoint": "#999999", "kill -9 of a worker": "#D55E00",
    "kill -9 of the run": "#8B0000", "stopped worker": "#CC79A7", "overload": "#E69F00", "full disk": "#56B4E9",
    "clock jump": "#7F3F98", "locked table": "#A6761D",
}  # fmt: skip
_CURVES: Sequence[tuple[str, str, Callable[[Glance], float]]] = (
    ("latency .99, ms", "log", lambda seen: 1e3 * seen.high),
    ("table behind, s", "log", lambda seen: max(seen.behind, 0.05)),
    ("memory, MiB", "linear", lambda seen: seen.memory or float("nan")),
    ("open files", "linear", lambda seen: seen.files or float("nan")),
    ("workers", "linear", lambda seen: seen.workers),
)


def write_report(path: Path, watch: Lookout, verdicts: Sequence[Answer], provenance: Provenance, about: str) -> None:
    """One file that needs no other."""
    rows = "".join(
        f"<tr><td>{escape(each.question)}</td><td>{escape(each.answer)}</td>"
        f'<td class="{"good" if each.good else "bad"}">{"good" if each.good else "not good"}</td></tr>'
        for each in verdicts
    )
    happened = "".join(
        f"<tr><td>{begin:,.0f} s</td><td>{escape(name)}</td><td>{escape(said)}</td></tr>"
        for begin, _, name, said in watch.events
    )
    counts = ", ".join(f"{count} {name}" for name, count in Counter(name for _, _, name, _ in watch.events).items())
    items = "".join(f"<li>{escape(fault)}</li>" for fault in watch.faults)
    faults = f"<h2>Faults</h2><ul>{items}</ul>" if items else ""
    path.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Endurance</title><style>{_STYLE}</style>'
        f"<h1>A run that was left alone with its troubles</h1>"
        f'<p class="about">{escape(about)}<br>{provenance.started:%Y-%m-%d %H:%M}, revision '
        f"{escape(provenance.short_revision)}, {escape(one_line(provenance.machine))}<br><code>"
        f"{escape(provenance.command)}</code></p><table>{rows}</table>{faults}"
        f"<h2>What was seen</h2><p>{escape(counts)}. The run was started {watch.run.starts} times.</p>"
        f'<img alt="Curves over time" src="data:image/png;base64,{_png(draw(watch))}">'
        f"<h2>What happened</h2><table><tr><th>at</th><th>what</th><th>and then</th></tr>{happened}</table></html>\n",
        encoding="utf-8",
    )


def draw(watch: Lookout) -> Figure:
    """The curves, one above the other, with a stripe for each trouble."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(11, 11), layout="constrained")
    axes: list[Axes] = list(figure.subplots(len(_CURVES), 1, sharex=True))
    minutes = [seen.seconds / 60 for seen in watch.seen]
    for axis, (label, kind, value) in zip(axes, _CURVES, strict=True):
        for begin, end, name, _ in watch.events:
            axis.axvspan(begin / 60, max(end, begin + 2) / 60, color=_COLOURS[name], alpha=0.25, linewidth=0)
        axis.plot(minutes, [value(seen) for seen in watch.seen], color="#222", linewidth=0.8)
        axis.set_ylabel(label)
        axis.set_yscale(kind)
        axis.margins(x=0)
    axes[-1].set_xlabel("minutes")
    handles = [Patch(color=colour, alpha=0.4, label=name) for name, colour in _COLOURS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


def _png(figure: Figure) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return b64encode(data.getvalue()).decode()
