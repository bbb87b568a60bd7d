"""How many records were slower than that: complementary cumulative distributions, the paper's Figures 13 to 15."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from megaphone.harness.histogram import Histogram
from megaphone.harness.plots.style import BLACK, COLOURS, finish, house_style, log_axis, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@house_style()
def ccdf(
    families: Mapping[str, Histogram],
    title: str,
    caption: str = "",
    *,
    ordered: bool = False,
    reference: Sequence[str] = (),
    legend: str | None = None,
) -> Figure:
    """A line for each histogram of latencies in ns.

    `ordered`: the names are values of one parameter (numbers of bins) and are coloured from dark to light. Those in
    `reference` are what the others are held against: black and dashed.
    """
    figure, (axes,) = new_figure(6.4, 4.2)
    colours = _colours([name for name in families if name not in reference], ordered)
    lowest, low, high = 0.1, float("inf"), 0.0
    for name, histogram in families.items():
        if not len(histogram):
            continue
        values, above = histogram.ccdf()
        # Above a value there are as many as before, until the next value that occurs: a staircase from 1 down.
        milliseconds = np.concatenate([[histogram.least], values]) / 1e6
        axes.plot(
            np.maximum(milliseconds, 1e-6),
            np.concatenate([[1.0], above]),
            drawstyle="steps-post",
            label=name,
            color=BLACK if name in reference else colours[name],
            linestyle="--" if name in reference else "-",
        )
        lowest = min(lowest, 1 / len(histogram))
        low, high = min(low, float(milliseconds[0])), max(high, float(milliseconds[-1]))
    low, high = (low, high) if high else (1.0, 10.0)
    log_axis(axes.xaxis, max(low, 1e-6), high)
    axes.set_yscale("log")
    bottom = max(1e-5, 10 ** np.floor(np.log10(lowest)))
    axes.set_ylim(bottom, 1.3)
    exponents = range(0, round(float(np.log10(bottom))) - 1, -1)
    axes.set_yticks([10.0**e for e in exponents], [_fraction(e) for e in exponents])
    axes.minorticks_off()
    axes.set_xlabel("latency in ms")
    axes.set_ylabel("records that were slower")
    if len(families) > 1:
        axes.legend(title=legend, loc="center left", bbox_to_anchor=(1.01, 0.5), alignment="left")
    return finish(figure, title, caption)


def _fraction(exponent: int) -> str:
    """A power of ten as a share.

    >>> [_fraction(e) for e in (0, -1, -2, -4)]
    ['all', '10 %', '1 %', '0.01 %']
    """
    return "all" if exponent == 0 else f"{100 * 10.0**exponent:.10g} %"


def _colours(names: Sequence[str], ordered: bool) -> dict[str, str]:
    if not ordered:
        return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    import matplotlib
    from matplotlib.colors import to_hex

    scale = matplotlib.colormaps["viridis"]
    return {name: to_hex(scale(0.9 * i / max(1, len(names) - 1))) for i, name in enumerate(names)}
