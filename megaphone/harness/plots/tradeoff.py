"""Maximum latency against duration of migrations: the paper's Figures 16 to 18."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from megaphone.harness.outcome import Outcome
from megaphone.harness.plots.style import COLOURS, GREY, MARKERS, finish, house_style, log_axis, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Point:
    """A migration: its strategy, the parameter that was varied (empty if none was), and what it cost."""

    strategy: str
    parameter: str
    seconds: float
    max_latency: float  # seconds


def points(outcome: Outcome, parameter: str = "") -> list[Point]:
    """One for each migration of a run that ended, with the maximum latency during it."""
    return [
        Point(migration.episode.name, parameter, migration.episode.seconds, migration.during.greatest / 1e9)
        for migration in outcome.migrations
        if migration.episode.seconds is not None and len(migration.during)
    ]


@house_style()
def latency_against_duration(
    migrations: Sequence[Point], title: str, caption: str = "", *, legend: str | None = None
) -> Figure:
    """A line for each strategy, a shape for each value of the parameter, which `legend` names. Left and low is good."""
    figure, (axes,) = new_figure(6.4, 4.2)
    strategies = list(dict.fromkeys(point.strategy for point in migrations))
    parameters = list(dict.fromkeys(point.parameter for point in migrations))
    for number, strategy in enumerate(strategies):
        mine = [point for point in migrations if point.strategy == strategy]
        xs, ys = [max(p.seconds, 1e-6) for p in mine], [max(p.max_latency * 1e3, 1e-3) for p in mine]
        colour = COLOURS[number % len(COLOURS)]
        if parameters != [""]:
            axes.plot(xs, ys, color=colour, linewidth=1, alpha=0.6)
        for point, x, y in zip(mine, xs, ys, strict=True):
            marker = MARKERS[parameters.index(point.parameter) % len(MARKERS)]
            axes.plot([x], [y], marker, color=colour, markersize=7, markeredgecolor="white", markeredgewidth=0.6)
        axes.plot([], [], color=colour, marker="o" if parameters == [""] else "", linewidth=2, label=strategy)
    durations, latencies = [point.seconds for point in migrations], [point.max_latency * 1e3 for point in migrations]
    for axis, values, limit in ((axes.xaxis, durations, axes.set_xlim), (axes.yaxis, latencies, axes.set_ylim)):
        low, high = _limits([value for value in values if value > 0])
        log_axis(axis, low, high)
        limit(low, high)
    axes.set_xlabel("duration of the migration in s")
    axes.set_ylabel("maximum latency during it in ms")
    if migrations:
        _explain(axes, parameters, legend)
    return finish(figure, title, caption)


def _limits(values: list[float]) -> tuple[float, float]:
    """Room around the values, and at least a power of ten: a shorter axis would exaggerate small differences.

    >>> [round(limit, 3) for limit in _limits([1.0, 1.0])], [round(limit, 3) for limit in _limits([1.0, 1000.0])]
    ([0.316, 3.162], [0.355, 2818.383])
    """
    low, high = min(values, default=1.0), max(values, default=1.0)
    room = max((high / low) ** 0.15, (10 * low / high) ** 0.5)
    return low / room, high * room


def _explain(axes: Axes, parameters: list[str], legend: str | None) -> None:
    """Which colour is which strategy, and which shape is which value."""
    strategies = axes.legend(title="strategy", loc="upper left", bbox_to_anchor=(1.01, 1), alignment="left")
    if parameters != [""]:
        axes.add_artist(strategies)
        strategies.set_clip_on(False)  # or no room is made for it
        shapes = [
            axes.plot([], [], MARKERS[i % len(MARKERS)], color=GREY, label=name)[0] for i, name in enumerate(parameters)
        ]
        axes.legend(handles=shapes, title=legend, loc="lower left", bbox_to_anchor=(1.01, 0), alignment="left")
