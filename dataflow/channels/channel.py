"""Channels: count a message, then put it into a local queue or hand it to the transport.

The count comes first and both are part of the same atomic change (nothing is flushed in between), so no worker can ever
believe that a message which is on its way does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dataflow.channels.pact import Batch, Pact
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.channels.ports import InputPort
    from dataflow.run.dataflow import Dataflow


class LocalChannel:
    """To an input of the same worker."""

    __slots__ = ("_counts", "_index", "_operator", "_queue")

    def __init__(self, dataflow: Dataflow, target: InputPort) -> None:
        self._counts = dataflow.outbox.pending.counts
        self._index = target.index
        self._queue = target.queue
        self._operator = target.operator

    def prepare(self, batch: Batch) -> Batch:
        """What `push` needs: the batch itself."""
        return batch

    def push(self, time: Time, batch: Batch) -> None:
        """Sends one message."""
        counts = self._counts
        pointstamp = (self._index, time)
        count = counts.get(pointstamp, 0) + 1
        if count:
            counts[pointstamp] = count
        else:
            del counts[pointstamp]
        self._queue.append((time, batch))
        operator = self._operator
        if not operator.active:
            operator.activate()


class RoutedChannel:
    """To the inputs of all workers, as a pact says."""

    __slots__ = ("_count", "_dataflow", "_index", "_local", "_pact", "_peers", "_send", "_target", "_worker")

    def __init__(self, dataflow: Dataflow, target: InputPort, pact: Pact) -> None:
        self._dataflow = dataflow
        self._send = dataflow.send_data
        self._pact = pact
        self._target = target.operator.label
        self._peers = dataflow.pump.peers
        self._worker = dataflow.pump.index
        self._index = target.index
        self._local = LocalChannel(dataflow, target)
        self._count = dataflow.outbox.pending.update

    def prepare(self, batch: Batch) -> Sequence[Batch]:
        """The parts of the batch, one per worker. Calls the program's key function, which may raise."""
        try:
            return self._pact.split(batch, self._peers)
        except Exception as error:
            error.add_note(f"in the key of {self._target}")
            raise

    def push(self, time: Time, parts: Sequence[Batch]) -> None:
        """Sends a message to each worker that has a part in the batch."""
        for worker, part in enumerate(parts):
            if not len(part):
                continue
            if worker == self._worker:
                self._local.push(time, part)
            else:
                self._count((self._index, time), +1)
                self._send(worker, self._index, time, part)


class AcknowledgedChannel(RoutedChannel):
    """To the inputs of all workers, which acknowledge what they take. Keeps account of what they have not yet taken."""

    __slots__ = ("_port",)

    def __init__(self, dataflow: Dataflow, target: InputPort, pact: Pact) -> None:
        super().__init__(dataflow, target, pact)
        self._port = target
        self._send = self._send_and_note

    def _send_and_note(self, worker: int, channel: int, time: Time, batch: Batch) -> int:
        size = self._dataflow.send_data(worker, channel, time, batch)
        self._port.on_its_way += size
        return size
