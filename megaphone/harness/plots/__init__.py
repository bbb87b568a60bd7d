"""Plots of what the harness measures, with matplotlib, which is imported when the first one is drawn.

- `timeline`: latency over time, with migrations; `timelines` puts several runs side by side.
- `ccdf`: how many records were slower than that; one line, or a family of them.
- `tradeoff`: maximum latency against duration of migrations. `memory`: of processes, over time. `bars`.
- `style`: what they look like; `save` and `data_uri` make files of them.

Each takes what was measured, a title and a caption (where the numbers are from), and returns a matplotlib figure.
"""

from megaphone.harness.plots.bars import bars
from megaphone.harness.plots.ccdf import ccdf
from megaphone.harness.plots.memory import memories, memory, memory_panels
from megaphone.harness.plots.style import PlotsNotInstalled, data_uri, save
from megaphone.harness.plots.timeline import timeline, timelines
from megaphone.harness.plots.tradeoff import Point, latency_against_duration, points

__all__ = [
    "PlotsNotInstalled",
    "Point",
    "bars",
    "ccdf",
    "data_uri",
    "latency_against_duration",
    "memories",
    "memory",
    "memory_panels",
    "points",
    "save",
    "timeline",
    "timelines",
]
