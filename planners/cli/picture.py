"""A picture of who would have what: a strip of tasks for each planner. Needs matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planners.errors import BadRequest
from planners.model import Amounts, Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planners.scaling.simulation import Story

Colour = tuple[float, float, float, float]  # red, green, blue and opacity

PER_STRIP, LARGEST = 0.55, 12.0


def draw(path: str, plans: Mapping[str, Plan]) -> None:
    """Writes the picture. Tasks go from left to right, as wide as their state; colours are nodes, hatching is moves."""
    if not plans:
        raise BadRequest("there is no plan to draw: none of the planners found one")
    figure = _figure(plans)
    try:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    except ValueError as error:
        raise BadRequest(f"cannot draw {path}: {error}") from None


def _figure(plans: Mapping[str, Plan]) -> Figure:
    try:
        from matplotlib import colormaps
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError as error:
        raise BadRequest("pictures need matplotlib: pip install 'megaphone-dataflow[plots]'") from error

    first = next(iter(plans.values()))
    nodes = sorted({node for plan in plans.values() for node in (*plan.current.nodes, *plan.assignment.nodes)})
    palette = colormaps["tab20"]
    colours = {node: palette(i % 20) for i, node in enumerate(nodes)}
    figure = Figure(figsize=(9, min(LARGEST, 1.2 + PER_STRIP * (len(plans) + 1))))  # not pyplot's: nothing is global
    axes = figure.subplots()
    edges = _edges(first.tasks.sizes)
    labels = ["now"]
    _strip(axes, 0, edges, first.current.map(), first.current.map(), colours)
    for row, (name, plan) in enumerate(plans.items(), start=1):
        _strip(axes, row, edges, plan.map(), plan.current.map(), colours)
        missed = "" if plan.met else " (not met)"
        labels.append(f"{name}\ncost {plan.share:.0%}, load {plan.balance:+.0%}{missed}")
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(0, edges[-1])
    axes.set_xlabel("tasks, as wide as their state; hatched: moves")
    axes.spines[["top", "right", "left"]].set_visible(False)
    handles = [Patch(color=colours[node], label=f"node {node}") for node in nodes[:20]]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8, frameon=False)
    return figure


def _edges(sizes: Amounts) -> NDArray[np.float64]:
    """Where tasks begin and end on the picture; if none has state, all are as wide."""
    widths = sizes.astype(np.float64)
    return np.concatenate([[0.0], np.cumsum(widths if widths.any() else np.ones(len(widths)))])


def _strip(
    axes: Axes,
    row: int,
    edges: NDArray[np.float64],
    owners: NDArray[np.int64],
    before: NDArray[np.int64],
    colours: Mapping[int, Colour],
) -> None:
    """Neighbours with the same owner and fate are one bar."""
    fates = list(zip(owners.tolist(), (owners != before).tolist(), strict=True))
    begin = 0
    for (node, moved), run in groupby(fates):
        end = begin + len(list(run))
        axes.barh(
            row,
            edges[end] - edges[begin],
            left=edges[begin],
            height=0.72,
            color=colours[node],
            edgecolor="white",
            linewidth=0.6,
            hatch="////" if moved else None,
        )
        begin = end


def draw_stories(path: str, stories: Mapping[str, Story]) -> None:
    """Writes a picture of the autoscaler at work: for each curve the rates, the workers, and those of the oracle."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadRequest("pictures need matplotlib: pip install 'megaphone-dataflow[plots]'") from error

    figure = Figure(figsize=(9, 2.3 * len(stories)), layout="constrained")
    for row, (name, story) in zip(figure.subplots(len(stories), squeeze=False), stories.items(), strict=True):
        axes: Axes = row[0]
        seconds = range(len(story.offered))
        rates = axes.twinx()
        rates.fill_between(seconds, [rate / 1000 for rate in story.offered], color="#d8dee6", linewidth=0)
        rates.set_ylabel("offered, 1,000/s", fontsize=8)
        rates.set_ylim(bottom=0)
        axes.set_zorder(rates.get_zorder() + 1)
        axes.patch.set_visible(False)
        axes.step(seconds, story.fewest, where="post", color="#c0504d", linewidth=1, label="oracle")
        axes.step(seconds, story.workers, where="post", color="#1f4e79", linewidth=1.6, label="autoscaler")
        axes.set_title(f"{name}: {story.under} s under, {story.over} s over", fontsize=9, loc="left")
        axes.set_ylabel("workers", fontsize=8)
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, len(story.offered))
        axes.tick_params(labelsize=8)
        rates.tick_params(labelsize=8)
    last = figure.axes[len(stories) - 1]
    last.legend(fontsize=8, loc="upper right")
    last.set_xlabel("seconds", fontsize=8)
    try:
        figure.savefig(path, dpi=110)
    except ValueError as error:
        raise BadRequest(f"cannot draw {path}: {error}") from None
