"""A timeline of one worker: which operator's step ran when, for as long as somebody asks for it.

While nobody does, nothing here runs: a trace takes the place of `Dataflow.run` on the worker's dataflows, and gives it
back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump

MOST = 1 << 19  # steps of one trace


@dataclass(frozen=True, slots=True, eq=False)
class StepTrace:
    """Steps, in the order in which they ended."""

    worker: int
    pid: int
    names: dict[str, list[str]]  # by dataflow, its operators
    dataflows: NDArray[np.int32]  # of each step: which of the names' keys
    operators: NDArray[np.int32]
    began: NDArray[np.int64]  # nanoseconds since 1970
    took: NDArray[np.int64]
    complete: bool  # whether all steps are here: not if there were too many


@contextmanager
def traced(pump: Pump) -> Iterator[Callable[[], StepTrace]]:
    """Traces what a worker does in this block; gives a function that makes the timeline of it."""
    steps: list[tuple[int, int, int, int]] = []
    dataflows = list(pump.dataflows)
    offset = time_ns() - perf_counter_ns()
    for at, dataflow in enumerate(dataflows):
        if "run" in vars(dataflow):
            continue  # somebody traces it already, and has its steps
        vars(dataflow)["run"] = partial(_run, dataflow, at, steps)

    def timeline() -> StepTrace:
        columns = np.array(steps, np.int64).reshape(-1, 4).T
        return StepTrace(
            pump.index,
            os.getpid(),
            {dataflow.name: [operator.name for operator in dataflow.operators] for dataflow in dataflows},
            columns[0].astype(np.int32),
            columns[1].astype(np.int32),
            columns[2] + offset,
            columns[3],
            len(steps) < MOST,
        )

    try:
        yield timeline
    finally:
        for dataflow in dataflows:
            if isinstance(mine := vars(dataflow).get("run"), partial) and mine.args[2] is steps:
                del vars(dataflow)["run"]


def _run(
    dataflow: Dataflow, at: int, steps: list[tuple[int, int, int, int]], number: int, idle: bool = False
) -> None:
    """`Dataflow.run`, noted."""
    began = perf_counter_ns()
    type(dataflow).run(dataflow, number, idle)
    if len(steps) < MOST:
        steps.append((at, number, began, perf_counter_ns() - began))
