"""What main saves: the value from which it can go on, for each time at which a snapshot may be taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dataflow.build.cuts import Participant, Share
from dataflow.comm import codec
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow

NAME = "main"


class SavedByMain(Participant):
    """The values that main has saved on this worker, each as of the time at which its inputs were then."""

    name = NAME

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._values: list[tuple[Time, bytes]] = []  # invariant: in the order of times; the first is at most the limit
        self._gate = dataflow.enrol(self, self._give)
        assert self._gate is not None

    def save(self, value: object) -> None:
        """From where the inputs are now, main can go on with this value."""
        dataflow = self._dataflow
        ports = dataflow.fed or dataflow.entries  # of sources main knows nothing
        now = min((min(port.held) for port in ports if port.held), default=None)
        if now is None:
            return  # its inputs have ended: there is nothing to go on with
        encoded = codec.encode(value)  # at once: main may change the value
        if self._values and self._values[-1][0] == now:
            self._values.pop()
        self._values.append((now, encoded))
        assert self._gate is not None
        while len(self._values) > 1 and self._values[1][0] <= self._gate.limit:
            del self._values[0]

    def _give(self) -> None:
        """When a cut waits, the inputs are past it: the cut stream follows them."""
        gate = self._gate
        while gate is not None and gate.cut is not None:
            before = [value for time, value in self._values if time <= gate.cut]
            gate.give(Share(before[-1] if before else None))

    def restore(self, shares: Mapping[int, object]) -> None:
        """Main has asked for them before (`saved_values`); what it does not save anew is kept."""
        mine = shares.get(self._dataflow.pump.index)
        if isinstance(mine, bytes) and self._dataflow.resume_at is not None:
            self._values.append((self._dataflow.resume_at, mine))


def saved_values(shares: Mapping[int, object]) -> dict[int, object]:
    """By worker, what its main had saved."""
    return {worker: codec.decode(share) for worker, share in shares.items() if isinstance(share, bytes)}
