"""The independent checker: no worker's frontier is ever ahead of a pointstamp that exists.

It knows every worker and every message on its way, counts what is really there, and asks each tracker whether it could
still see it. It shares nothing with the protocol.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from dataflow.comm.messages import AnyMessage, Data


class Checker:
    """Looks now and then, as a seed says."""

    def __init__(self, seed: int, often: float = 0.05) -> None:
        self._chance = random.Random(f"checker {seed}")
        self._often = often
        self.looked = 0

    def __call__(self, pumps: Mapping[int, Any], on_their_way: Iterable[AnyMessage]) -> None:
        if self._chance.random() < self._often:
            self.look(pumps, on_their_way)

    def look(self, pumps: Mapping[int, Any], on_their_way: Iterable[AnyMessage]) -> None:
        """Raises if somebody believes that something is over which is not."""
        self.looked += 1
        there = self._there(pumps, on_their_way)
        for pump in pumps.values():
            for dataflow in pump.dataflows:
                if dataflow.dropped:
                    continue
                for index, time in there.get(dataflow.number, ()):
                    location = dataflow.graph.locations[index]
                    assert dataflow.tracker.could_see(index, time), (
                        f"worker {pump.index} believes that {time} is over at {dataflow.graph.name(location)} of "
                        f"{dataflow.name!r}, and it is not"
                    )

    def _there(self, pumps: Mapping[int, Any], on_their_way: Iterable[AnyMessage]) -> dict[int, Counter[Any]]:
        there: dict[int, Counter[Any]] = {}
        for pump in pumps.values():
            for dataflow in pump.dataflows:
                counts = there.setdefault(dataflow.number, Counter())
                for operator in dataflow.operators:
                    for port in operator.inputs:
                        counts.update((port.index, time) for time, _ in port.queue)
                    for output in operator.outputs:
                        counts.update((output.index, time) for time in output.held)
        for message in on_their_way:
            if isinstance(message, Data):
                there.setdefault(message.dataflow, Counter())[message.channel, message.time] += 1
        return there
