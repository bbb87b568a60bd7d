"""Simulated lives of one program: each goes on from the last snapshot, and may end at any turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing

from dataflow.errors import Stuck
from dataflow.recovery.catalogue import claim
from dataflow.recovery.format import encode_manifest
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.policy import Recovery
from dataflow.recovery.resume import Resume
from dataflow.run.exceptions import unwrap
from dataflow.testing import Simulation, _fair

NAME = "dataflow 0"
Main = Callable[..., Awaitable[Any]]


class Crashed(Exception):
    """A life has ended at a turn."""


class Lives:
    """One storage, and life after life on it."""

    def __init__(self, storage: MemoryStorage | None = None, every: float = 1.0) -> None:
        self.storage = storage or MemoryStorage()
        self.every = every
        self.began: list[int | None] = []  # where each life went on from

    def live(self, main: Main, workers: int, seed: int, turns: int = 300_000) -> int:
        """A life of so many turns at most; how many it took. Crashed if it did not get to its end."""
        simulation = Simulation(workers, seed, False, None, turns, _fair)

        async def run() -> None:
            claimed = await claim(self.storage, NAME, created=0.0)
            self.began.append(claimed.time)
            resume = Resume(
                Recovery(self.storage, every=self.every), claimed.incarnation, {NAME: encode_manifest(claimed)}
            )
            for pump in simulation._pumps:
                pump.recovery = resume
            await simulation.run(main, ())

        try:
            trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
        except BaseException as error:
            cause = unwrap(error) if isinstance(error, BaseExceptionGroup) else error
            if isinstance(cause, Stuck) and "still running" in str(cause):
                raise Crashed from None
            raise cause from None
        return simulation.turn
