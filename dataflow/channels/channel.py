"""Channels: count a message, then put it into a local queue or hand it to the transport.

The count comes first and both are part of the same atomic change (nothing is flushed in between), so no worker can ever
believe that a message which is on its way does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dataflow.channels.pact import Batch, Pact
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.channels.ports import InputPort
    from dataflow.run.dataflow import Dataflow

WEIGHED = 255  # one message in 256 is weighed, where nobody needs its weight but those who look: it costs more than all
# else here. A power of two, less one.


class LocalChannel:
    """To an input of the same worker."""

    __slots__ = ("_counts", "_index", "_operator", "_port", "_queue", "_schedule")

    most: Time = None  # of what does not leave the worker nobody asks

    def __init__(self, dataflow: Dataflow, target: InputPort) -> None:
        self._counts = dataflow.outbox.pending.counts
        self._index = target.index
        self._queue = target.queue
        self._operator = target.operator
        self._schedule = dataflow.schedule
        self._port = target

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
        port = self._port
        port.local_records += len(batch)
        port.messages = number = port.messages + 1
        if number & WEIGHED == 1:
            port.weigh(batch)
        operator = self._operator
        if not operator.active:
            operator.active = True  # as `activate` does
            self._schedule(operator.number)

    def check(self, batch: Batch) -> None:
        """Nothing is refused."""


class AloneChannel(LocalChannel):
    """An exchange of a worker that is alone. It knows the greatest time at which something was sent, as all exchanges
    do: others may join after that."""

    __slots__ = ("most",)

    def __init__(self, dataflow: Dataflow, target: InputPort) -> None:
        super().__init__(dataflow, target)
        self.most = None

    def push(self, time: Time, batch: Batch) -> None:
        """Sends one message."""
        if self.most is None or time > self.most:
            self.most = time
        LocalChannel.push(self, time, batch)  # `super()` would take as long as the counters in it


class RoutedChannel:
    """To the inputs of all workers, as a pact says."""

    __slots__ = ("_count", "_dataflow", "_index", "_local", "_pact", "_peers", "_send", "_target", "_worker", "most")

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
        self.most: Time = None  # the greatest time at which something was sent

    def prepare(self, batch: Batch) -> Sequence[Batch]:
        """The parts of the batch, one per worker. Calls the program's key function, which may raise."""
        try:  # as in `split`, which would be another call for each batch
            return self._pact.split(batch, self._peers)
        except Exception as error:
            error.add_note(f"in the key of {self._target}")
            raise

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        """The parts of the batch for so many workers."""
        try:
            return self._pact.split(batch, peers)
        except Exception as error:
            error.add_note(f"in the key of {self._target}")
            raise

    def push(self, time: Time, parts: Sequence[Batch]) -> None:
        """Sends a message to each worker that has a part in the batch."""
        if self.most is None or time > self.most:
            self.most = time
        for worker, part in enumerate(parts):
            if not len(part):
                continue
            if worker == self._worker:
                self._local.push(time, part)
            else:
                self._count((self._index, time), +1)
                self._send(worker, self._index, time, part)

    def push_to(self, worker: int, time: Time, part: Batch) -> None:
        """Sends a message to one worker, unless it is empty."""
        if not len(part):
            return
        if worker == self._worker:
            self._local.push(time, part)
        else:
            self._count((self._index, time), +1)
            self._send(worker, self._index, time, part)

    def note(self, time: Time) -> None:
        """Remembers the greatest time."""
        if self.most is None or time > self.most:
            self.most = time

    def check(self, batch: Batch) -> None:
        """Refuses what the pact would refuse, and sends nothing."""
        self._pact.check(batch)


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


def root_of(depth: int) -> Callable[[Time], Time]:
    """From a time of a scope so deep to that of the root."""
    return (lambda time: time[0]) if depth else (lambda time: time)
