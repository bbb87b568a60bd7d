"""Pictures: panels of lines, side by side, saved as PNG under ``figures/``."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.run import Run

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]  # Okabe and Ito: for all eyes
MARKERS = "osD^vPX"


@dataclass
class Panel:
    """One pair of axes; a line for each series of (x, y)."""

    x: str
    y: str
    series: dict[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    log_x: int = 0  # the base, or 0 for linear
    log_y: bool = False
    steps: bool = False  # a distribution
    ticks: dict[float, str] = field(default_factory=dict)

    def add(self, name: str, x: float, y: float) -> None:
        """One more point."""
        xs, ys = self.series.setdefault(name, ([], []))
        self.series[name] = ([*xs, x], [*ys, y])


def draw(run: Run, title: str, caption: str, *panels: Panel) -> None:
    """Draws the panels side by side, as the picture of the figure that is under way."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'megaphone-dataflow[plots]'") from error
    figure = Figure(figsize=(5.2 * len(panels) + 0.4, 4.3), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for i, (label, (x, y)) in enumerate(panel.series.items()):
            colour = COLOURS[i % len(COLOURS)]
            if panel.steps:
                axes.step(x, y, where="post", label=label, color=colour, linewidth=1.6)
            else:
                marker = MARKERS[i % len(MARKERS)]
                dashed = "--" if "(dashed)" in label else "-"
                style = {"color": colour, "marker": marker, "markersize": 5 + i, "zorder": 3 - 0.1 * i}
                axes.plot(x, y, dashed, label=label.replace(" (dashed)", ""), **style)  # equal lines both show
        axes.set_xlabel(panel.x)
        axes.set_ylabel(panel.y)
        if panel.log_x:
            axes.set_xscale("log", base=panel.log_x)
        if panel.log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, 1.04 * axes.get_ylim()[1])  # markers at the top are whole
        if panel.ticks:
            axes.set_xticks(list(panel.ticks), list(panel.ticks.values()))
            axes.minorticks_off()
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    figure.supxlabel(textwrap.fill(caption, 85 * len(panels)), fontsize=8, color="#555555")
    run.draw(figure)
