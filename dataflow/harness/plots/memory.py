"""Resident memory over time: the paper's Figure 19."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dataflow.harness.episodes import Episode
from dataflow.harness.outcome import Outcome
from dataflow.harness.plots.style import COLOURS, finish, house_style, label_ends, new_figure
from dataflow.harness.plots.timeline import mark_episodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def memory(outcome: Outcome, title: str, caption: str = "") -> Figure:
    """The resident set of each worker's process, with the migrations."""
    lines = {f"worker {worker}": samples for worker, samples in outcome.memory.items()}
    return memories(lines, title, caption, episodes=[migration.episode for migration in outcome.migrations])


@house_style()
def memories(
    lines: Mapping[str, tuple[Sequence[float], Sequence[int]]],
    title: str,
    caption: str = "",
    *,
    episodes: Sequence[Episode] = (),
) -> Figure:
    """A line for each name, from (seconds, bytes): workers of a run, or one worker under several strategies."""
    figure, (axes,) = new_figure(8, 3.2)
    peak = max((max(sizes) for _, sizes in lines.values() if len(sizes)), default=0)
    unit, scale = ("GiB", 1 << 30) if peak >= 1 << 30 else ("MiB", 1 << 20)
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
    axes.set_xlabel("time in s since the start")
    axes.set_ylabel(f"resident memory in {unit}")
    mark_episodes(axes, episodes, until)
    label_ends(axes, ends)
    return finish(figure, title, caption)
