"""What things cost one worker, in seconds of a core of the machine where they were measured. Plain data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
KEPT = Path(__file__).with_name("measured.json")


@dataclass(frozen=True)
class MeasuredCosts:
    """Seconds for one of each. `apply` is by bytes of state that a worker has: of more, less is in its caches."""

    epoch: float  # of a worker, whatever is in it
    peer: float  # of an epoch, for each other worker: its progress
    message: float  # a batch of records to or from another worker, at both ends
    route: float  # a record, in F
    apply: tuple[tuple[float, float], ...]  # a record, in S: (bytes of state, seconds), growing
    byte: float  # of a record that goes to another worker, at both ends
    hop: float  # from one worker's word to the next worker's turn, on one machine
    wait: float  # of an epoch besides its work: from its end until somebody knows that it is complete
    step: float  # a step of a migration, on each worker
    bin: float  # a bin that moves, at either end
    take: float  # a byte of state that leaves a worker
    install: float  # a byte of state that arrives
    snapshot: float  # a byte of state that is written to a snapshot
    start: float  # from asking for workers until they take part
    wake: float = 0.0  # of an epoch, if there are other workers: being woken by them
    switch: float = 0.0  # of an epoch, where workers take turns on cores
    crowd: float = 0.0  # where k workers take turns on a core, a record costs k to this power as much: of caches
    slice: float = 0.0  # at most so long a worker waits for its turn on a core, where there are very many for each
    swing: float = 0.0  # by which a slow epoch is later than usual where they take turns, as a share of its latency
    stall: float = 0.0  # the same in seconds, where each worker has a core
    pieces: float = 0.0  # a step that moves more than one piece of state

    def apply_seconds(self, state: Floats) -> Floats:
        """What a record costs on workers with so many bytes of state each. Linear in the logarithm of the bytes."""
        sizes, seconds = (np.array(column) for column in zip(*self.apply, strict=True))
        return np.asarray(np.interp(np.log2(np.maximum(state, 1.0)), np.log2(sizes), seconds))


def write_costs(costs: MeasuredCosts, path: Path = KEPT, **provenance: str) -> None:
    """Keeps costs, with where they are from."""
    path.write_text(json.dumps({"provenance": provenance, "seconds": asdict(costs)}, indent=1) + "\n")


def read_costs(path: Path = KEPT) -> MeasuredCosts:
    """Costs that were kept."""
    seconds = json.loads(path.read_text())["seconds"]
    apply = tuple((float(size), float(cost)) for size, cost in seconds.pop("apply"))
    return MeasuredCosts(apply=apply, **{name: float(value) for name, value in seconds.items()})
