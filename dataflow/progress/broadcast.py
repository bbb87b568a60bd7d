"""How workers tell each other of their progress: atomic batches, in order per sender.

A worker gathers every change that it makes to the counts of pointstamps; now and then it broadcasts all of them
at once, to every worker, itself included. Three rules make that safe under any delay between senders
(docs/internals/progress.md has the argument):

1. a batch is applied as a whole or not at all;
2. batches of one sender are applied in the order in which they were sent, none twice and none left out;
3. an event is in the same batch as, or a later one than, the event that gave it the right to happen.

Nothing here does I/O. `Outbox` is the sender's half, `Inbox` the receiver's.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.errors import ProtocolError
from dataflow.progress.change_batch import ChangeBatch
from dataflow.progress.tracker import Change, Pointstamp

UNNUMBERED = -1  # in the place of a number: a batch that comes in order because of the way on which it comes


@dataclass(slots=True)
class ProgressBatch:
    """All changes of a worker since its last batch. `sequence` counts its batches from 0. Nobody changes one."""

    sender: int
    sequence: int
    changes: tuple[Change, ...]


class Outbox:
    """Gathers a worker's changes. `pending` may be updated by whoever makes progress; O(1) each."""

    def __init__(self, sender: int) -> None:
        self.pending: ChangeBatch[Pointstamp] = ChangeBatch()
        self._sender = sender
        self._sequence = 0

    @property
    def next(self) -> int:
        """The number of the next batch."""
        return self._sequence

    def flush(self) -> ProgressBatch | None:
        """The batch to broadcast now, to this worker as well; None if everything cancelled out."""
        if not self.pending.counts:
            return None
        return ProgressBatch(self._sender, self.take_number(), tuple(self.pending.drain()))

    def take_number(self) -> int:
        """The number of a batch that is being sent."""
        number = self._sequence
        self._sequence += 1
        return number


class Inbox:
    """Checks that each sender's batches come in order. O(1) per batch."""

    def __init__(self, expected: dict[int, int] | None = None) -> None:
        self._expected: dict[int, int] = {} if expected is None else expected  # by sender; 0 of those who are not there

    def accept(self, batch: ProgressBatch) -> tuple[Change, ...]:
        """The changes to apply; ProtocolError if a batch was lost, repeated or overtaken."""
        if batch.sequence == UNNUMBERED:
            return batch.changes
        expected = self._expected.get(batch.sender, 0)
        if batch.sequence != expected:
            raise ProtocolError(
                f"progress batch {batch.sequence} of worker {batch.sender} arrived when {expected} was due: "
                "the transport must deliver each worker's batches once and in order"
            )
        self._expected[batch.sender] = expected + 1
        return batch.changes
