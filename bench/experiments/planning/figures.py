"""Figures 12 to 15 and 17 of the live version, for the word-count workload (see `workload`).

They are drawn at the paper's scale, 64 tasks on 8 to 16 nodes. MTM-aware migration needs the projected cost of every
balanced partitioning, of which there are up to 10^13: so its tables are on a grid, for each tau the finest that has no
more than `MOST` of them, and the figure says how fine that is and what it may cost. Beside it, exactly enumerated, are
24 tasks on 3 to 6 nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from bench.experiments.planning.sequences import drawn
from bench.experiments.planning.walks import (
    Spread,
    Step,
    hashing_walk,
    mtm_walk,
    redist_walk,
    ssm_walk,
    storm_walk,
)
from bench.experiments.planning.workload import transitions, word_count
from bench.registry import figure
from bench.run import Run
from megaphone.harness.plots.style import COLOURS, MARKERS, finish, house_style, new_figure
from planners import Intervals, Tables, Tasks, ssm
from planners.intervals.feasibility import smallest_tau, tightest_cuts
from planners.mtm.grids import coarse
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project
from planners.mtm.transitions import Transitions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAMMA, TAU = 0.8, 1.2  # the paper's defaults
MOST, QUICK_MOST = 200_000, 3_000  # partitionings of a grid: eight taus take some minutes, or some seconds
TIGHT = 0.6  # with steady loads, at the default tau all planners of intervals move next to nothing


@dataclass
class Line:
    """A curve: means, and the spread over sequences if there is one."""

    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    spread: list[float] = field(default_factory=list)

    def add(self, x: float, y: float, spread: float = 0.0) -> None:
        self.x.append(x)
        self.y.append(y)
        self.spread.append(spread)


@dataclass(frozen=True, eq=False)
class PlanningScale:
    """How much of the paper's setting is measured."""

    tasks: Tasks
    matrix: Transitions
    label: str
    most: int | None = None  # partitionings: if there are more, cuts are on a grid

    def problem(self, tau: float, gamma: float) -> MTMProblem | None:
        """What tables are made for: all partitionings, or those on the finest grid that has not too many. None if every
        grid has too many, or allows no balance."""
        exact = MTMProblem(self.tasks, self.matrix, tau, gamma)
        if self.most is None or _size(exact) <= self.most:
            return exact
        for cells in range(len(self.tasks) - 1, 1, -1):
            gridded = MTMProblem(self.tasks, self.matrix, tau, gamma, coarse(self.tasks, cells))
            counts = [gridded.partitionings(nodes).count for nodes in gridded.counts]
            if all(counts) and sum(counts) <= self.most:
                return gridded
        return None

    def grid(self, tau: float, gamma: float) -> str:
        """How fine the grid is, and the bound on its error as a share of all state, for people."""
        problem = self.problem(tau, gamma)
        if problem is None:
            return f"τ = {tau:g}: none has at most {self.most:,} partitionings"
        if problem.grid is None:
            return f"τ = {tau:g}: exact"
        error = problem.grid.cost_error(self.tasks, max(self.matrix.counts), gamma) / self.tasks.total_size
        return f"τ = {tau:g}: {len(problem.grid)} cells, ≤ {error:.0%}"

    @property
    def short(self) -> str:
        """For names of results."""
        return f"m = {len(self.tasks)}"

    @property
    def taus(self) -> list[float]:
        """From the least that every node count allows, in steps, to 1.6."""
        least = max(smallest_tau(self.tasks, nodes) for nodes in self.matrix.counts)
        return [tau for tau in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6) if tau >= least]


def _size(problem: MTMProblem) -> int:
    return sum(problem.partitionings(nodes).count for nodes in problem.counts)


def paper_scale(run: Run) -> PlanningScale:
    most = QUICK_MOST if run.quick else MOST
    return PlanningScale(word_count(64), transitions(8, 16), "64 tasks, 8 to 16 nodes", most)


def exact_scale(run: Run) -> PlanningScale:
    m = 16 if run.quick else 24
    return PlanningScale(word_count(m), transitions(3, 6), f"{m} tasks, 3 to 6 nodes, all enumerated")


@figure("optimal-12", "migration cost by load-balancing factor: MTM-aware, SSM, Redist, consistent hashing, Storm")
def figure_12(run: Run) -> None:
    paper, exact = paper_scale(run), exact_scale(run)
    panels = {
        f"{paper.label};\nloads as the tables suppose": _costs(run, paper, "steady loads"),
        f"{paper.label};\nloads drift from those of the tables": _costs(run, paper, "loads drift"),
        f"{exact.label};\nloads as the tables suppose": _costs(run, exact, "steady loads"),
        f"{exact.label};\nloads drift from those of the tables": _costs(run, exact, "loads drift"),
    }
    note = f" {_grids(paper, paper.taus, GAMMA)}"
    draw_lines(
        run, "Migration cost by load-balancing factor", "τ", "state moved by a migration (%)", panels, True, note=note
    )


def _grids(scale: PlanningScale, taus: Sequence[float], gamma: float) -> str:
    """The grids that tables of the paper's scale are on, in a sentence."""
    told = "; ".join(scale.grid(tau, gamma) for tau in taus)
    what = f"Tables of {len(scale.tasks)} tasks are on a grid: cells, and the bound on what they add to projected costs"
    return f"{what} (of all time to come, in shares of all state): {told}."


def _costs(run: Run, scale: PlanningScale, loads: str) -> dict[str, Line]:
    """By planner, the cost of a migration at each tau, with its spread over sequences."""
    drift = loads == "loads drift"  # then each step is another, and takes longer to plan
    many = drawn(scale.matrix, scale.tasks, 4 if run.quick else 8 if drift else 20, drift=drift)
    fixed = {"consistent hashing": hashing_walk(scale.tasks, 20 if run.quick else 100), "Storm": storm_walk()}
    lines: dict[str, Line] = {}
    for tau in run.each(f"{scale.label}, {loads}", scale.taus):
        walks = {"single-step (SSM)": ssm_walk(tau), "Redist": redist_walk(tau), **fixed}
        if (tables := _tables(scale, tau, GAMMA)) is not None:
            walks["MTM-aware"] = mtm_walk(tables)
        for name, walk in walks.items():
            spread = Spread.of(walk, many)
            lines.setdefault(name, Line()).add(tau, 100 * spread.mean, 100 * spread.deviation)
            run.report(f"{scale.short}, {loads}, tau = {tau}: {name}", 100 * spread.mean, "%")
    return lines


@figure("optimal-13", "running time of SSM by load-balancing factor")
def figure_13(run: Run) -> None:
    scale, line = paper_scale(run), Line()
    many = drawn(scale.matrix, scale.tasks, 1, length=20 if run.quick else 100, drift=True)[0]
    for tau in run.each("tau", scale.taus):
        milliseconds = _ssm_times(many, tau)
        line.add(tau, float(np.median(milliseconds)))
        run.report(f"tau = {tau}, {scale.label}: median", line.y[-1], "ms", baseline=2.0)
    panels = {f"{scale.label}; the paper never exceeds 2 ms": {"single-step (SSM)": line}}
    draw_lines(run, "Running time of SSM", "τ", "one plan, median (ms)", panels)


@figure("optimal-15", "single-step migration by number of tasks: cost and running time")
def figure_15(run: Run) -> None:
    matrix = transitions(8, 16)
    cost, times = Line(), Line()
    for m in run.each("tasks", [32, 64, 128, 256, 512] if run.quick else [32, 64, 128, 256, 512, 1024, 2048, 4096]):
        tasks = word_count(m)
        many = drawn(matrix, tasks, 3 if run.quick else 10, drift=True)
        spread = Spread.of(ssm_walk(TAU), many)
        cost.add(m, 100 * spread.mean, 100 * spread.deviation)
        milliseconds = _ssm_times(many[0][:20], TAU)
        times.add(m, float(np.median(milliseconds)))
        run.report(f"m = {m}: cost", cost.y[-1], "%")
        run.report(f"m = {m}: time of a plan", times.y[-1], "ms")
    panels = {"state moved by a migration (%)": {"cost": cost}, "one plan, median (ms)": {"running time": times}}
    title = f"Single-step migration by number of tasks (8 to 16 nodes, τ = {TAU})"
    draw_lines(run, title, "tasks", "", panels, log_x=True)


@figure("optimal-17", "effect of the discount factor on MTM-aware migration: cost and time of PMC")
def figure_17(run: Run) -> None:
    paper, exact = paper_scale(run), exact_scale(run)
    panels: dict[str, dict[str, Line]] = {}
    seconds: dict[str, Line] = {}
    for scale, tau in ((paper, TAU), (paper, TIGHT), (exact, TIGHT)):
        name = f"m = {len(scale.tasks)}, τ = {tau}"
        panels[f"state moved by a migration (%);\n{scale.label}, τ = {tau}"], seconds[name] = _by_gamma(run, scale, tau)
    panels["PMC in one process (s of processor time)"] = seconds
    note = " Bars: standard error. Where all is enumerated, γ = 0 is SSM but for which of equally cheap plans. "
    note += _grids(paper, (TIGHT, TAU), GAMMA)
    draw_lines(run, "Effect of the discount factor", "γ", "", panels, note=note)


def _by_gamma(run: Run, scale: PlanningScale, tau: float) -> tuple[dict[str, Line], Line]:
    """Costs of MTM-aware and single-step migration, and the time that tables take, by discount factor."""
    many = drawn(scale.matrix, scale.tasks, 10 if run.quick else 50)
    cost, seconds, single = Line(), Line(), Line()
    reference = Spread.of(ssm_walk(tau), many)
    project(MTMProblem(word_count(8), transitions(2, 3), 1.2, 0.0))  # loads what is compiled
    for gamma in run.each(f"gamma, {scale.short}, tau = {tau}", [0.0, 0.2, 0.4, 0.6, 0.8, 0.9]):
        start = time.process_time()
        tables = _tables(scale, tau, gamma)
        if tables is None:
            continue
        seconds.add(gamma, time.process_time() - start)
        spread = Spread.of(mtm_walk(tables), many)
        cost.add(gamma, 100 * spread.mean, 100 * spread.deviation / len(many) ** 0.5)
        single.add(gamma, 100 * reference.mean)
        label = f"{scale.short}, tau = {tau}, gamma = {gamma}"
        run.report(f"{label}: cost", cost.y[-1], "%", baseline=100 * reference.mean)
        run.report(f"{label}: PMC", seconds.y[-1], "s")
    return {"MTM-aware": cost, "single-step (SSM)": single}, seconds


@cache  # a scale is the same object throughout a figure, and has its tables made once
def _tables(scale: PlanningScale, tau: float, gamma: float) -> Tables | None:
    problem = scale.problem(tau, gamma)
    return None if problem is None else Tables.of(project(problem))


def _ssm_times(steps: Sequence[Step], tau: float) -> list[float]:
    """Milliseconds of each plan of a sequence. (Not `best_of`: it would collect garbage before each of hundreds.)"""
    current = Intervals(tightest_cuts(steps[0].tasks, steps[0].nodes))
    times = []
    for step in steps[1:]:
        tasks, least = step.tasks, smallest_tau(step.tasks, step.nodes)
        within = max(tau, least)
        plan = partial(ssm, current, nodes=step.nodes, sizes=tasks.sizes, loads=tasks.loads, tau=within)
        times.append(min(_seconds(plan) for _ in range(3)) * 1e3)
        current = plan().assignment.intervals()
    return times


def _seconds(body: Callable[[], object]) -> float:
    start = time.perf_counter()
    body()
    return time.perf_counter() - start


def draw_lines(
    run: Run,
    title: str,
    x_label: str,
    y_label: str,
    panels: Mapping[str, Mapping[str, Line]],
    log: bool = False,
    log_x: bool = False,
    note: str = "",
    workload: str = "Word count: Zipf 0.9 over 50,000 words; node counts of a synthetic month.",
) -> None:
    with house_style():
        shared = bool(y_label)
        picture, axes = new_figure(4.8 * len(panels), 4.2, len(panels)) if shared else _apart(4.8, 4.2, len(panels))
        names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
        for panel, (label, lines) in zip(axes, panels.items(), strict=True):
            for name, line in lines.items():
                colour, marker = COLOURS[names.index(name)], MARKERS[names.index(name)]
                bars = line.spread if any(line.spread) else None
                panel.errorbar(
                    line.x, line.y, yerr=bars, label=name, color=colour, marker=marker,
                    markersize=5, capsize=2, elinewidth=0.8,
                )  # fmt: skip
            panel.set_title(label, fontsize=9)
            panel.set_xlabel(x_label)
            if log:
                panel.set_yscale("log")
            else:
                panel.set_ylim(bottom=0)
            if log_x:
                panel.set_xscale("log", base=2)
            panel.legend()
        axes[0].set_ylabel(y_label)
        bound = " Hashing and Storm keep to no τ." if "Storm" in names else ""
        spread = " Bars: standard deviation." if shared and bound else ""
        run.draw(finish(picture, title, (workload + bound + spread + note).strip()))


def _apart(width: float, height: float, columns: int) -> tuple[Figure, list[Axes]]:
    """Panels that each have their own y axis: they show different things."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(width * columns, height), layout="constrained")
    return picture, list(picture.subplots(1, columns, squeeze=False)[0])
