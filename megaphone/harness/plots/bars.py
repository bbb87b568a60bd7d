"""Bars, in groups: throughput of queries by variant, for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from megaphone.harness.plots.style import BLACK, COLOURS, finish, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@house_style()
def bars(
    groups: Mapping[str, Mapping[str, float]],
    title: str,
    unit: str,
    caption: str = "",
    *,
    line: tuple[float, str] | None = None,
) -> Figure:
    """A group of bars for each name, and in it one for each series: `{"Q1": {"native": 2e6, "migratable": 1.9e6}}`.

    Every bar bears its number. `line`: a height to compare with, and what it is.
    """
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    width = 0.8 / max(1, len(series))
    figure, (axes,) = new_figure(max(5.0, 1.6 + 0.55 * len(groups) * max(1.5, len(series))), 3.8)
    for number, name in enumerate(series):
        places = [place for place, group in enumerate(groups.values()) if name in group]
        heights = [group[name] for group in groups.values() if name in group]
        drawn = axes.bar(
            [place + (number - (len(series) - 1) / 2) * width for place in places],
            heights,
            width * 0.92,
            color=COLOURS[number % len(COLOURS)],
            label=name,
        )
        axes.bar_label(drawn, [_short(height) for height in heights], fontsize=7, padding=2, color=BLACK)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.12)
    axes.set_ylabel(unit)
    axes.yaxis.set_major_formatter(lambda value, _: _short(value))
    if line is not None:
        axes.axhline(line[0], color=BLACK, linewidth=1, linestyle="--", label=line[1])
    if len(series) > 1 or line is not None:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return finish(figure, title, caption)


def _short(value: float) -> str:
    """Three digits with the letter of its thousands.

    >>> [_short(value) for value in (0, 12.345, 4200, 17_900_000, 0.0123)]
    ['0', '12.3', '4.2 k', '17.9 M', '0.0123']
    """
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {letter}"
    return f"{value:.3g}"
