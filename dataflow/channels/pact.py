"""Parallelisation contracts: which worker gets which records of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeAlias

from dataflow.channels.blame import name_last, name_record
from dataflow.channels.hashing import stable_hash
from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError
from dataflow.values import Key, Record

Batch: TypeAlias = Collection[Record] | Columns
"""The records of one message: rows, nearly always in a list, or columns. Nobody changes a batch in place."""


class ArrowStream(Protocol):
    """A table of any library that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class Pact(ABC):
    """A contract. `name` is part of what workers compare when they agree on the graph."""

    name: str
    validates = False  # whether `split` must be called for one worker as well
    acknowledged = False  # whether receivers acknowledge what they take: see InputPort.on_its_way
    addressed = False  # whether parts are by number of worker, whoever takes part (else, by place among members)
    audience = False  # whether everybody who is there gets all of it, whoever takes part at its time

    @abstractmethod
    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        """One part (perhaps empty) for each worker. For one worker it is called only if the contract `validates`."""

    def check(self, batch: Batch) -> None:  # noqa: B027  # few refuse anything
        """Refuses what `split` would refuse of a batch that is held back for a moment, and does nothing else."""


class Pipeline(Pact):
    """Records stay on their worker."""

    name = "pipeline"

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        raise AssertionError("a pipeline is never split")


class Exchange(Pact):
    """Each record goes to the worker that the hash of its key names; equal keys go to the same worker.

    >>> Exchange(lambda x: x).split([1, 2, 3, 4, 5], peers=2)
    [[2, 4], [1, 3, 5]]
    """

    name = "exchange"

    def __init__(self, key: Callable[[Record], Key]) -> None:
        if not callable(key):
            raise ConstructionError(f"exchange needs a function from a record to its key, not {key!r}")
        self.key = key

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        key = self.key
        if type(batch) is list and len(batch) == 1:
            return self._place(batch, peers)
        records = iter(batch)
        try:
            if isinstance(batch, Columns):  # a row is a tuple to the key, and stays a row of columns
                return batch.divide([stable_hash(key(record)) % peers for record in records], peers)
            parts: list[list[Record]] = [[] for _ in range(peers)]
            appends = [part.append for part in parts]
            for record in records:
                k = key(record)
                # An integer is its own hash: not calling stable_hash halves the cost of an exchange.
                appends[(k if type(k) is int else stable_hash(k)) % peers](record)
        except Exception as error:
            name_last(error, batch, records)
            raise
        return parts

    def _place(self, batch: list[Record], peers: int) -> Sequence[Batch]:
        """The same for one record, without a list for each worker: most epochs are small."""
        try:
            k = self.key(batch[0])
            to = (k if type(k) is int else stable_hash(k)) % peers
        except Exception as error:
            name_record(error, batch[0])
            raise
        parts: list[list[Record]] = [[]] * peers
        parts[to] = [batch[0]]
        return parts


class ToWorker(Pact):
    """All records go to one worker."""

    name = "to-worker"

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self.name = f"to worker {worker}"

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        return [batch if worker == self.worker % peers else [] for worker in range(peers)]


class Broadcast(Pact):
    """Every worker gets every record. The parts are one object: batches are not to be changed in place."""

    name = "broadcast"

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        return [batch] * peers


class Audience(Broadcast):
    """Everybody who is there gets every record, whoever takes part at its time: for what everybody must know."""

    audience = True
