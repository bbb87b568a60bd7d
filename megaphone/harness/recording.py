"""What one worker returns from a run: a little plain data, from which everything else is computed afterwards."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from megaphone.harness.episodes import Episode
from megaphone.harness.schedule import Ints, LoadSchedule, PlainSchedule


class Recording(TypedDict):
    """One worker's run. All times are nanoseconds since the start; `dataflow.execute` can return it from a worker."""

    worker: int
    schedule: PlainSchedule  # `LoadSchedule.to_dict`
    through: list[int]  # entry i: from at[i] on, the epochs before through[i] were known to be complete
    at: list[int]
    sent: int  # epochs
    gave_up: int | None  # when the grace was over, if epochs were still missing
    episodes: list[tuple[str, int, int | None]]  # name, begin, end (None: it has not ended)
    memory_at: list[int]
    memory: list[int]  # bytes
    stolen: int  # `machine.stolen` of the run, which is the same on all workers of a host


def completions(recording: Recording) -> tuple[Ints, int]:
    """(when each epoch was complete, how many were). Epochs that never were are charged until the run was given up."""
    schedule = LoadSchedule.from_dict(recording["schedule"])
    through, at = np.asarray(recording["through"], np.int64), np.asarray(recording["at"], np.int64)
    complete = int(through[-1]) if len(through) else 0
    done = at[np.searchsorted(through, np.arange(complete), side="right")]
    if complete < schedule.epochs:
        assert recording["gave_up"] is not None, "a run ends when all is complete, or is given up"
        done = np.concatenate([done, np.full(schedule.epochs - complete, recording["gave_up"])])
    return done, complete


def episodes_of(recording: Recording) -> list[Episode]:
    """Its episodes."""
    return [Episode(name, begin, end) for name, begin, end in recording["episodes"]]
