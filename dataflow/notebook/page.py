"""A look at a run as HTML, with the looks before it as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from dataflow.notebook.looks import DataflowLook, Look, OperatorLook, StateLook
from dataflow.text import size_text

_WIDTH, _HEIGHT = 180, 28  # of a line, in pixels
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")


def page(title: str, state: str, looks: Sequence[Look], problem: str = "") -> str:
    """What there is to see: the last look, and how it came to be."""
    return "".join(_page(title, state, looks, problem))


def _page(title: str, state: str, looks: Sequence[Look], problem: str) -> Iterator[str]:
    yield '<div style="font-family: sans-serif; font-size: 13px; line-height: 1.5">'
    yield f"<b>{escape(title)}</b> <span>{escape(state)}</span>"
    if looks:
        last = looks[-1]
        yield f" &middot; {last.workers} workers &middot; {size_text(last.memory)}"
        for flow in last.dataflows:
            yield from _dataflow(flow, looks)
    if problem:
        yield f'<pre style="color: #b00">{escape(problem)}</pre>'
    yield "</div>"


def _dataflow(flow: DataflowLook, looks: Sequence[Look]) -> Iterator[str]:
    history = [each for look in looks for each in look.dataflows if each.name == flow.name]
    latency = "none yet"
    if flow.latency is not None:
        latency = f"{1000 * flow.latency[0]:.1f} ms &middot; .99 {1000 * flow.latency[1]:.1f} ms"
    frontier = f"complete before {escape(flow.complete_before or 'its end')}"
    inputs = f"inputs at {escape(flow.inputs_at or 'their end')}, {flow.behind:.1f} s behind"
    rows = [
        ("rate", f"{flow.rate:,.0f} records/s, {flow.records:,} so far", [each.rate for each in history]),
        ("latency", latency, [each.latency[1] if each.latency else 0.0 for each in history]),
        ("frontier", f"{frontier}; {inputs}", [each.behind for each in history]),
    ]
    yield f'<div style="margin-top: 6px"><i>{escape(flow.name)}</i><table style="font-size: inherit">'
    for name, text, values in rows:
        yield f"<tr><td>{name}</td><td>{_line(values)}</td><td>{text}</td></tr>"
    for state in flow.state:
        text = f"{escape(state.name)}: {size_text(state.bytes)}{_moving(state)}"
        yield f"<tr><td>bins</td><td>{_bins(state)}</td><td>{text}</td></tr>"
    yield "</table>"
    yield from _operators(flow.operators)
    yield "</div>"


def _moving(state: StateLook) -> str:
    return f"; {escape(state.moving)}" if state.moving else ""


def _operators(operators: Sequence[OperatorLook]) -> Iterator[str]:
    failed = sum(each.failed for each in operators)
    told = f", {failed:,} records failed" if failed else ""
    yield f'<details><summary>{len(operators)} operators{told}</summary><table style="font-size: inherit">'
    yield "<tr><th>operator</th><th>busy</th><th>records/s</th><th>queued</th><th>failed</th></tr>"
    for each in sorted(operators, key=lambda each: -each.busy):
        cells = (f"{each.busy:.0%}", f"{each.rate:,.0f}", str(each.queued), f"{each.failed:,}" if each.failed else "")
        yield f"<tr><td>{escape(each.name)}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</table></details>"


def _line(values: Sequence[float]) -> str:
    """Values as a line, from left to right; the greatest touches the top."""
    top = max([*values, 1e-12])
    step = _WIDTH / max(1, len(values) - 1)
    heights = [_HEIGHT - 2 - (_HEIGHT - 4) * value / top for value in values]
    points = " ".join(f"{n * step:.1f},{height:.1f}" for n, height in enumerate(heights))
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" style="background: #f4f4f4">'
        f'<polyline points="{points}" fill="none" stroke="{_COLOURS[0]}" stroke-width="1.5"/></svg>'
    )


def _bins(state: StateLook) -> str:
    """How many bins each worker has, as parts of a bar."""
    total = max(1, sum(count for _, count in state.bins))
    place, parts = 0.0, []
    for worker, count in state.bins:
        width = _WIDTH * count / total
        colour = _COLOURS[worker % len(_COLOURS)]
        title = f"<title>worker {worker}: {count} bins</title>"
        parts.append(f'<rect x="{place:.1f}" width="{width:.1f}" height="14" fill="{colour}">{title}</rect>')
        place += width
    return f'<svg width="{_WIDTH}" height="14">{"".join(parts)}</svg>'
