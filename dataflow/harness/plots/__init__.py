"""Plots of what the harness measures, with matplotlib, which is imported when the first one is drawn.

- `timeline`: latency over time, with migrations; `timelines` puts several runs side by side.
- `ccdf`: how many records were slower than that; one line, or a family of them.
- `tradeoff`: maximum latency against duration of migrations. `memory`: of processes, over time. `bars`.
- `style`: what they look like; `save` and `data_uri` make files of them.

Each takes what was measured, a title and a caption (where the numbers are from), and returns a matplotlib figure.
"""

from dataflow.harness.plots.bars import bars
from dataflow.harness.plots.ccdf import ccdf
from dataflow.harness.plots.memory import memories, memory, memory_panels
from dataflow.harness.plots.style import PlotsNotInstalled, data_uri, save
from dataflow.harness.plots.timeline import timeline, timelines
from dataflow.harness.plots.tradeoff import Point, latency_against_duration, points

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
