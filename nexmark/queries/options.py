"""What a query is, and what can be chosen about one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from dataflow import Stream
from dataflow.columns import Columns
from nexmark.events.config import SECOND
from nexmark.queries.hot_auctions import PANES
from nexmark.queries.operators import Operators

DAY = 24 * 3600 * SECOND


@dataclass(frozen=True)
class QueryOptions:
    """Lengths of windows, and the resolution of the dataflow's times, in nanoseconds."""

    grid: int = SECOND // 1000
    q5_window: int = 60 * SECOND
    q5_slide: int = SECOND
    q7_window: int = 10 * SECOND
    q8_window: int = 12 * 3600 * SECOND
    q11_gap: int = 10 * SECOND
    q12_window: int = 10 * SECOND
    q15_day: int = DAY
    q16_day: int = DAY
    q17_day: int = DAY
    q18_day: int = DAY
    q19_day: int = DAY

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise ValueError(f"{name} must be a positive number of nanoseconds, not {value}")
        if self.q5_window % self.q5_slide:
            raise ValueError(f"the window of q5 must be a multiple of its slide: {self.q5_window} and {self.q5_slide}")
        if self.q5_window // self.q5_slide >= PANES:
            raise ValueError(f"the window of q5 has more than {PANES} slides")


Events: TypeAlias = Mapping[str, Stream[Columns]]
Query: TypeAlias = Callable[[Events, Operators, QueryOptions], Stream[Columns]]
