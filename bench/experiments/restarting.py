"""Figure 11 of the paper on optimal migration: stop-and-restart as the rival of live migration, over time."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.killing import SaidLine, WatchedProgram, ours
from bench.recovering import PACE
from bench.registry import figure
from bench.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MILLION = 1_000_000
BEGIN = 4.0  # seconds after all keys are loaded
Points = list[tuple[float, float]]  # when an epoch was due, and how much later it was complete, in seconds


@figure("optimal-11", "latency over time: live migration, and stop-and-restart from a snapshot, of the same state")
def figure_11(run: Run) -> None:
    million, seconds = (1, 10.0) if run.quick else (16, 40.0)
    lines: dict[str, Points] = {}
    for name in run.each("ways", ["live migration", "stop and restart"]):
        lines[name] = _live(million, seconds) if name == "live migration" else _restarted(million, seconds)
        worst = max(late for _, late in lines[name])
        run.report(f"{million} M keys, {name}: largest latency", worst * 1000, "ms")
        before = sorted(late for due, late in lines[name] if due < BEGIN)
        run.report(f"{million} M keys, {name}: median before", before[len(before) // 2] * 1000, "ms")
    run.draw(_draw(lines, million))


def _live(million: int, seconds: float) -> Points:
    with tempfile.TemporaryDirectory() as folder, ours(million * MILLION, 1.0, folder, migrate=BEGIN) as running:
        return _points([running], _start(running), seconds)


def _restarted(million: int, seconds: float) -> Points:
    """Everything is stopped, and the same command goes on from the last snapshot."""
    with tempfile.TemporaryDirectory() as folder:
        with ours(million * MILLION, 1.0, folder) as first:
            start = _start(first)
            first.wait(lambda line: line.startswith("done") and SaidLine(line).at > start.at + BEGIN)
        with ours(million * MILLION, 1.0, folder) as second:
            return _points([first, second], start, seconds)


def _start(running: WatchedProgram) -> SaidLine:
    return SaidLine(running.wait(lambda line: line.startswith("start")))


def _points(runs: list[WatchedProgram], start: SaidLine, seconds: float) -> Points:
    """Each epoch of the first so many seconds, when it was first complete."""
    last = start.epoch + round(seconds / PACE)
    runs[-1].wait(lambda line: line.startswith("done") and SaidLine(line).epoch >= last)
    found: dict[int, float] = {}
    for running in runs:
        for line in [SaidLine(line) for line in running.lines if line.startswith("done")]:
            found.setdefault(line.epoch, line.at)
    due = {epoch: (epoch - start.epoch) * PACE for epoch in range(start.epoch, last)}
    return [(at, found[epoch] - start.at - at) for epoch, at in due.items() if epoch in found]


def _draw(lines: Mapping[str, Points], million: int) -> Figure:
    from megaphone.harness.plots.style import BLUE, VERMILLION, finish, house_style, log_axis, new_figure

    with house_style():
        drawing, (axes,) = new_figure(8, 3.8)
        late = [max(value, 1e-4) * 1000 for points in lines.values() for _, value in points]
        log_axis(axes.yaxis, min(late), max(late))
        for (name, points), colour in zip(lines.items(), (BLUE, VERMILLION), strict=True):
            axes.plot([at for at, _ in points], [max(v, 1e-4) * 1000 for _, v in points], color=colour, label=name)
        axes.axvline(BEGIN, linewidth=0.8, linestyle=":")
        axes.set_xlabel("time in s at which an epoch was due")
        axes.set_ylabel("ms until it was complete")
        axes.legend()
        caption = (
            f"Two processes on one machine, {million} million hashed keys, 200,000 records/s in epochs of 10 ms, a "
            f"snapshot every second. At {BEGIN:g} s a quarter of the state moves, or all processes are killed and the "
            "same command is started again. One run each."
        )
        return finish(drawing, "Live migration, and stop-and-restart (Figure 11)", caption)
