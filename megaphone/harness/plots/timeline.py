"""Latency over time, with migrations: the paper's Figures 1 and 5 to 12."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from megaphone.harness.episodes import Episode
from megaphone.harness.outcome import Outcome
from megaphone.harness.plots.style import (
    BLUE,
    FAINT,
    GREY,
    ORANGE,
    SKY,
    VERMILLION,
    finish,
    house_style,
    label_ends,
    log_axis,
    new_figure,
)
from megaphone.harness.tables import duration, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES = ((1.0, VERMILLION, 1.1), (0.99, ORANGE, 1.5), (0.5, BLUE, 1.8))


def timeline(outcome: Outcome, title: str, caption: str = "") -> Figure:
    """The latency of records by when they were due: median, .99 and maximum of each window, and the middle half."""
    return timelines([("", outcome)], title, caption)


@house_style()
def timelines(runs: Sequence[tuple[str, Outcome]], title: str, caption: str = "") -> Figure:
    """A panel for each run, named, on one scale: what the paper does to compare strategies."""
    figure, panels = new_figure(8 if len(runs) == 1 else 1.4 + 3.6 * len(runs), 3.8, len(runs))
    rows = [value / 1e6 for _, run in runs for _, values in run.timeline.rows([0.25, 1]) for value in values]
    low, high = min(rows, default=1.0), max(rows, default=10.0)
    for panel, (name, run) in zip(panels, runs, strict=True):
        log_axis(panel.yaxis, low, high)
        panel.set_ylim(low / 1.3, high * 1.5)
        _draw(panel, run, name, last=panel is panels[-1])
    for panel in [panels[len(runs) // 2]] if len(runs) % 2 else panels:  # once, in the middle, if there is one
        panel.set_xlabel("time in s at which records were due")
    window = duration(runs[0][1].timeline.window_ns / 1e9)
    panels[0].set_ylabel(textwrap.fill(f"{runs[0][1].latency}, over {window} each", 36))  # as high as a panel is
    return finish(figure, title, caption)


def _draw(axes: Axes, run: Outcome, name: str, last: bool) -> None:
    rows = run.timeline.rows([0.25, 0.75, *(q for q, _, _ in _LINES)])
    rows += [(at + run.timeline.window_ns / 1e9, values) for at, values in rows[-1:]]  # the last window has a width too
    begins = [at for at, _ in rows]
    columns = [[values[i] / 1e6 for _, values in rows] for i in range(2 + len(_LINES))]
    axes.fill_between(begins, columns[0], columns[1], step="post", color=SKY, alpha=0.35, linewidth=0)
    for (_, colour, width), column in zip(_LINES, columns[2:], strict=True):
        axes.plot(begins, column, drawstyle="steps-post", color=colour, linewidth=width)
    axes.set_xlim(0, run.schedule.length_ns / 1e9)
    mark_episodes(axes, [migration.episode for migration in run.migrations], run.schedule.length_ns / 1e9, name)
    axes.set_title(name, pad=18 if run.migrations else 6)
    if run.warmup:
        _hatch(axes, 0, run.warmup, "warm-up", GREY)
    if not run.sustained:
        since = run.complete * run.schedule.epoch_ns / 1e9
        _hatch(axes, since, run.schedule.length_ns / 1e9, "never complete: true latencies are higher", VERMILLION)
    if last and begins:
        end = run.schedule.length_ns / 1e9
        ends = [(end, column[-1], label(q), colour) for (q, colour, _), column in zip(_LINES, columns[2:], strict=True)]
        label_ends(axes, [*ends, (end, (columns[0][-1] * columns[1][-1]) ** 0.5 * 0.999, ".25 to .75", SKY)])


def _hatch(axes: Axes, begin: float, end: float, text: str, colour: str) -> None:
    """Marks a stretch of time in which latencies are not what they seem."""
    axes.axvspan(begin, end, facecolor="none", edgecolor=FAINT, hatch="////", linewidth=0, zorder=0)
    axes.annotate(
        text, (begin, 0), xycoords=("data", "axes fraction"), xytext=(4, 4), textcoords="offset points",
        fontsize=8, color=colour,
    )  # fmt: skip


def mark_episodes(axes: Axes, episodes: Sequence[Episode], until: float, known: str = "") -> None:
    """Shades each episode, with its name (unless the reader knows it) and duration above, if there are not too many."""
    for episode in episodes:
        begin, end = episode.begin / 1e9, until if episode.end is None else episode.end / 1e9
        axes.axvspan(begin, end, color=GREY, alpha=0.18, linewidth=0, zorder=0)
        axes.axvline(begin, color=GREY, linewidth=0.8, zorder=0)
        if len(episodes) <= 8:
            took = "not ended" if episode.seconds is None else duration(episode.seconds)
            text = took if known.endswith(episode.name) else f"{episode.name}\n{took}"
            axes.annotate(
                text, (begin, 1), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
                fontsize=8, color=GREY, va="bottom", linespacing=1.15,
            )  # fmt: skip
