"""Pictures of the HybMig figures: curves over seconds, and bars with lines by a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bench.experiments.hybmig.clock import Amounts
from bench.run import Run
from megaphone.harness.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILLION, finish, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR = {
    **dict.fromkeys(("MS", "GMS"), VERMILLION),
    **dict.fromkeys(("PT", "GPT"), GREEN),
    **dict.fromkeys(("HybMig", "GHM"), BLUE),
    "HybMig with BSC": ORANGE,
    "without sharing": GREY,
    "with sharing": BLUE,
    "never migrated": BLACK,
}
MARKER = {"MS": "s", "PT": "^", "HybMig": "o", "HybMig with BSC": "D", "without sharing": "s", "with sharing": "o"}


@dataclass
class OverTime:
    """Curves over seconds from the start of the migration."""

    title: str
    y: str
    curves: Mapping[str, tuple[Amounts, Amounts]]  # by method, seconds and values
    log: bool = False

    def draw(self, axes: Axes) -> None:
        for name, (seconds, values) in self.curves.items():
            plain = name == "never migrated"
            axes.plot(
                seconds, values, ":" if plain else "-", label=name, color=COLOUR[name],
                linewidth=0.9 if plain else 1.3, zorder=2 if plain else 3,
            )  # fmt: skip
        if self.log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_title(self.title, fontsize=9)
        axes.set_xlabel("seconds from the start of the migration")
        axes.set_ylabel(self.y)
        axes.legend(fontsize=8)


@dataclass
class ByParameter:
    """Bars for right-deep plans and lines for bushy ones, as the paper has them; or lines alone."""

    title: str
    x: str
    y: str
    ticks: Sequence[float]
    bars: dict[str, list[float]] = field(default_factory=dict)
    lines: dict[str, list[float]] = field(default_factory=dict)
    log: bool = True
    level: float | None = None  # a horizontal line: the window
    kinds: tuple[str, str] = ("right-deep", "bushy")

    def draw(self, axes: Axes) -> None:
        places = np.arange(len(self.ticks))
        width = 0.8 / max(1, len(self.bars))
        for i, (name, values) in enumerate(self.bars.items()):
            at = places + (i - (len(self.bars) - 1) / 2) * width
            label = f"{name}, {self.kinds[0]}" if self.lines else name
            axes.bar(at, values, width * 0.92, label=label, color=COLOUR[name], alpha=0.55, zorder=2)
        for i, (name, values) in enumerate(self.lines.items()):
            label = f"{name}, {self.kinds[1]}" if self.bars else name
            axes.plot(
                places, values, label=label, color=COLOUR[name],
                marker=MARKER[name], markersize=7 - i, zorder=3 + 0.1 * i,
            )  # fmt: skip
        if self.level is not None:
            axes.axhline(self.level, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
        axes.set_xticks(places, [f"{tick:g}" for tick in self.ticks])
        if self.log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_title(self.title, fontsize=9)
        axes.set_xlabel(self.x)
        axes.set_ylabel(self.y)
        axes.legend(fontsize=7.5, ncols=2 if self.bars and self.lines else 1, columnspacing=1.0)


def draw(run: Run, title: str, caption: str, rows: Sequence[Sequence[OverTime | ByParameter]]) -> None:
    """Panels in rows and columns, as the picture of the figure that is under way."""
    with house_style():
        from matplotlib.figure import Figure

        columns = len(rows[0])
        picture = Figure(figsize=(5.2 * columns, 3.7 * len(rows) + 0.6), layout="constrained")
        for row, line in zip(picture.subplots(len(rows), columns, squeeze=False), rows, strict=True):
            for axes, panel in zip(row, line, strict=True):
                panel.draw(axes)
        run.draw(finish(picture, title, caption))
