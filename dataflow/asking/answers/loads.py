"""What the shards of an operator cost, report by report, and where they are: for planners in another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dataflow.asking.answers.get import find_operator
from dataflow.asking.messages import Arguments, Question, Refused, text_of
from dataflow.asking.run import NamedRun
from dataflow.build.hooks import LoadNews

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


@dataclass(frozen=True, slots=True, eq=False)
class LoadAnswer:
    """An operator as worker 0 knows it, and the reports since somebody asked last."""

    members: tuple[int, ...]  # workers that can have shards
    places: NDArray[np.uint16]  # by shard, its worker
    groups: NDArray[np.int64]  # how many shards there are in each group that moves as one, in their order
    moving: bool  # whether a migration that was asked for from outside is under way
    news: LoadNews


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """What worker 0 says: reports go to every worker."""
    return await run.ask_worker(0, Question("loads", arguments))


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """Reports from the number `since` on."""
    _, operator = find_operator(pump, text_of(arguments, "operator"))
    since = arguments.get("since", 0)
    if type(since) is not int or since < 0:
        raise Refused(f"'since' is the number of a report, not {since!r}")
    if operator.loads is None or operator.placement is None:
        raise Refused(f"the state of {operator.name} stays on its worker: build it with megaphone to plan for it")
    placement, steering = operator.placement, operator.steering
    last = None if steering is None else steering.last
    return LoadAnswer(
        tuple(placement.members),
        np.array(placement.workers()),
        placement.groups(),
        last is not None and last.under_way,
        operator.loads.news(since),
    )
