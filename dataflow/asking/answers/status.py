"""How are you: what every worker has counted so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.asking.messages import Arguments, Question, Refused
from dataflow.asking.run import NamedRun
from dataflow.run.readings import WorkerReading, read_worker

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """The facts of the run, the readings of workers that answer, and by worker why others do not."""
    readings, silent = [], {}
    for worker, reading in (await run.ask_all(Question("status"))).items():
        if isinstance(reading, WorkerReading):
            readings.append(reading)
        else:
            silent[worker] = str(reading) if isinstance(reading, Refused) else "answers something else"
    workers = len(readings) + len(silent)
    facts = {"name": run.facts.name, "pid": run.facts.pid, "workers": workers, "since": run.facts.since}
    return [facts, readings, silent]


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """A reading."""
    return read_worker(pump)
