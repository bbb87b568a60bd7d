"""How plots look, and how they become files. The only module that imports matplotlib, and only when a plot is drawn."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# Okabe and Ito's colours: told apart by everybody, and in grey.
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
)
BLACK, GREY, FAINT = "#222222", "#777777", "#dddddd"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

_STYLE: dict[RcKeyType, object] = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": BLACK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.5,
    "lines.solid_capstyle": "round",
    "svg.hashsalt": "dataflow",  # the same plot is the same file
}


class PlotsNotInstalled(ImportError):
    """matplotlib is missing."""


@contextmanager
def house_style() -> Iterator[None]:
    """Whatever is drawn or saved in here (also `@house_style()`) looks as plots do here; nothing outside changes."""
    try:
        import matplotlib
    except ImportError as error:
        raise PlotsNotInstalled("plots need matplotlib: pip install 'megaphone-dataflow[plots]'") from error
    with matplotlib.rc_context(_STYLE):
        yield


def new_figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure of so many inches, with panels side by side that share their y axis."""
    from matplotlib.figure import Figure

    # A Figure of its own, without pyplot: nothing global, and no display is needed.
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, sharey=True, squeeze=False)[0])


def finish(figure: Figure, title: str, caption: str) -> Figure:
    """Puts the title above everything, and where the numbers are from below."""
    wrapped = textwrap.fill(title, round(figure.get_figwidth() * 9))  # so many letters fit into an inch
    figure.suptitle(wrapped, x=0.01, ha="left", fontsize=12, fontweight="bold", color=BLACK)
    if caption:
        wrapped = textwrap.fill(caption, round(figure.get_figwidth() * 18))
        figure.supxlabel(wrapped, x=0.01, ha="left", fontsize=7, color=GREY)
    return figure


def save(figure: Figure, path: Path) -> Path:
    """Writes a PNG, SVG or PDF, by the name's ending; returns the path."""
    with house_style():
        figure.savefig(path, dpi=160, facecolor="white", metadata=_undated(path.suffix))
    return path


def data_uri(figure: Figure) -> str:
    """The picture itself as an address, for a page that needs no other file."""
    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format="svg", facecolor="white", metadata=_undated(".svg"))
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _undated(suffix: str) -> dict[str, None]:
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})


def log_axis(axis: XAxis | YAxis, low: float, high: float) -> None:
    """A logarithmic axis with plain numbers at the ticks, and with more than the powers of ten if it is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    between = (2.0, 5.0) if high / low < 100 else (3.0,) if high / low < 3000 else ()
    axis.set_major_locator(LogLocator(subs=(1.0, *between)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Writes names (x, y, text, colour) at the ends of lines, moved apart where they would overlap; top ones first."""
    from math import exp, log

    low, high = axes.get_ylim()
    logarithmic = axes.get_yscale() == "log"
    place, back = (log, exp) if logarithmic else (float, float)
    inches = float(axes.get_position().height * axes.get_figure(root=True).get_figheight())  # type: ignore[union-attr]
    step = (place(high) - place(low)) / inches * 0.2  # a line of text in data units
    at = float("-inf")
    from_below = list(reversed(ends))
    from_below.sort(key=lambda end: end[1])
    for x, y, text, colour in from_below:
        at = max(at + step, place(max(y, low)))
        axes.annotate(
            text, (x, back(at)), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9, color=colour,
            annotation_clip=False,
        )  # fmt: skip
