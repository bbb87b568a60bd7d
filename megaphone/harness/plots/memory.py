"""Resident memory over time: the paper's Figure 19."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from megaphone.harness.episodes import Episode
from megaphone.harness.outcome import Outcome
from megaphone.harness.plots.style import COLOURS, finish, house_style, label_ends, new_figure
from megaphone.harness.plots.timeline import mark_episodes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Samples = tuple[Sequence[float], Sequence[int]]  # seconds and bytes


def memory(outcome: Outcome, title: str, caption: str = "") -> Figure:
    """The resident set of each worker's process, with the migrations."""
    return memory_panels([("", outcome)], title, caption)


@house_style()
def memory_panels(runs: Sequence[tuple[str, Outcome]], title: str, caption: str = "") -> Figure:
    """A panel for each run, named, on one scale: what the paper does to compare strategies."""
    width, height = (8, 3.2) if len(runs) == 1 else (1.4 + 3.6 * len(runs), 3.8)
    figure, panels = new_figure(width, height, len(runs))
    peak = max((_peak(run.memory.values()) for _, run in runs), default=0)
    for panel, (name, run) in zip(panels, runs, strict=True):
        lines = {f"worker {worker}": samples for worker, samples in run.memory.items()}
        episodes = [migration.episode for migration in run.migrations]
        _draw(panel, lines, episodes, peak, named=panel is panels[-1], known=name)
        panel.set_title(name, pad=18 if episodes else 6)
    panels[len(runs) // 2].set_xlabel("time in s since the start")
    panels[0].set_ylabel(f"resident memory in {_unit(peak)[0]}")
    return finish(figure, title, caption)


@house_style()
def memories(lines: Mapping[str, Samples], title: str, caption: str = "") -> Figure:
    """A line for each name: workers of a run, or one worker under several strategies."""
    figure, (axes,) = new_figure(8, 3.2)
    peak = _peak(lines.values())
    _draw(axes, lines, (), peak, named=True)
    axes.set_xlabel("time in s since the start")
    axes.set_ylabel(f"resident memory in {_unit(peak)[0]}")
    return finish(figure, title, caption)


def _peak(lines: Iterable[Samples]) -> int:
    return max((max(sizes) for _, sizes in lines if len(sizes)), default=0)


def _unit(peak: int) -> tuple[str, int]:
    return ("GiB", 1 << 30) if peak >= 1 << 30 else ("MiB", 1 << 20)


def _draw(
    axes: Axes, lines: Mapping[str, Samples], episodes: Sequence[Episode], peak: int, named: bool, known: str = ""
) -> None:
    scale = _unit(peak)[1]
    until = max((times[-1] for times, _ in lines.values() if len(times)), default=1.0)
    ends = []
    for number, (name, (times, sizes)) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        scaled = [size / scale for size in sizes]
        axes.plot(times, scaled, color=colour)
        if scaled:
            ends.append((until, scaled[-1], name, colour))
    axes.set_ylim(0, peak / scale * 1.1 or 1)
    axes.set_xlim(0, until)
    mark_episodes(axes, episodes, until, known)
    if named:
        label_ends(axes, ends)
