"""F for columns: records are rows of arrays, and small batches are routed together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dataflow.channels.pact import Batch
from dataflow.columns import Columns
from dataflow.columns.hashing import Owners, as_words, route_apart, route_dense, route_hashed
from dataflow.columns.pact import require_columns
from dataflow.columns.scatter import split
from dataflow.lowlevel import Capability, Context, MessageCapability, OutputPort
from dataflow.time.order import Time
from megaphone.control import configuration
from megaphone.control.arranging import Arrangement
from megaphone.keys.keyspace import WordKeys, WordOverrides
from megaphone.keys.pinning import mark
from megaphone.router.routing import Parts, Router, Shared

FEW = 1 << 12  # records: batches of fewer are routed together, since each costs as much as many records


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns of an input that S needs, the key first: others stay behind. None: it needs all of them."""

    key: str
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, key: str, others: Iterable[str]) -> Self:
        """The key and some others, each once."""
        return cls(key, tuple(dict.fromkeys((key, *others))))


class Gathered:
    """Small batches of one input, of several times, that are routed together."""

    def __init__(self, peers: int) -> None:
        self.times: list[Time] = []
        self.batches: list[Columns] = []
        self._table: configuration.Table | None = None  # the configuration at all of these times
        self._capability: Capability | None = None  # at the least of them, which is the first
        self._rows = 0
        self._most = (1 << 16) // peers  # batches: what goes to whom is numbered in 16 bits

    def has_room(self, time: Time, table: configuration.Table, batch: Columns) -> bool:
        """Whether a batch can be added to those that are here."""
        if not self.batches:
            return True
        few = self._rows + len(batch) <= FEW and len(self.batches) < self._most
        return few and table is self._table and time >= self.times[0] and Columns.alike([self.batches[0], batch])

    def add(
        self,
        capability: Capability | MessageCapability,
        time: Time,
        table: configuration.Table,
        batch: Columns,
        output: OutputPort,
    ) -> None:
        """Keeps a batch, for which there is room."""
        if self._capability is None:
            if isinstance(capability, Capability):
                self._capability = capability.clone()
            else:
                self._capability = capability.retain(output.number)
        self._table = table
        self._rows += len(batch)
        self.times.append(time)
        self.batches.append(batch)

    @contextmanager
    def taken(self) -> Iterator[Capability]:
        """The right to send all of them; when that is done there is none any more."""
        assert self._capability is not None
        with self._capability as capability:
            yield capability
        self.times, self.batches, self._capability, self._rows = [], [], None, 0


class Placing(Protocol):
    """Where keys are: hashed, or dense."""

    @property
    def dense(self) -> bool:
        """Whether a key's bin is the key modulo the number of bins."""

    @property
    def bins(self) -> int:
        """How many there are."""

    @property
    def shift(self) -> int:
        """From a hash to its bin."""


class ColumnRouter(Router[Columns]):
    """F for columns."""

    def __init__(
        self,
        context: Context,
        shared: Shared[Columns],
        initial: Arrangement,
        wanted: Sequence[Wanted],
        keys: WordKeys,
        table: Placing,
    ) -> None:
        super().__init__(context, shared, initial, len(wanted), keys)
        self._wanted = wanted
        self._gathered = [Gathered(context.span) for _ in wanted]
        self._dense = table.dense
        self._find = route_dense if table.dense else route_hashed
        self._by = table.bins - 1 if table.dense else table.shift
        self._peers = context.span
        self._table: configuration.Table | None = None  # the configuration that was used last, and the same packed
        self._owners = Owners(np.zeros(0, np.uint16), 1)

    def resize(self) -> None:
        """Workers have joined: their numbers are greater than those that there were."""
        self._peers = self._context.span
        self._gathered = [Gathered(self._peers) for _ in self._wanted]
        self._table = None

    def give(self, capability: Capability | MessageCapability, time: Time, port: int, batch: Batch) -> None:
        overrides = self._configurations.overrides_at(time)
        if overrides is None:
            gathered = self._gathered[port]
            if self._peers > 1 and len(batch) < FEW and (gathered.batches or self._data[port].queue):
                table = self._configurations.at(time)
                columns = self._select(port, batch)
                if not gathered.has_room(time, table, columns):
                    self.give_rest(port)
                gathered.add(capability, time, table, columns, self._records[port])
            else:
                super().give(capability, time, port, batch)
            return
        assert isinstance(overrides, WordOverrides)  # as WordKeys makes them
        for parts in self._divide(time, port, self._select(port, batch), overrides):
            if len(parts):
                self._records[port].give(capability, parts)

    def give_rest(self, port: int) -> None:
        """Routes what was gathered, all of it at once, and sends each part at its own time."""
        gathered = self._gathered[port]
        if gathered.batches:
            peers, times = self._peers, gathered.times
            columns = Columns.concat(gathered.batches)
            to = self._owners_of(times[0], port, columns)
            firsts = np.arange(0, len(times) * peers, peers, dtype=np.uint16)
            to += np.repeat(firsts, [len(batch) for batch in gathered.batches])
            parts = split(columns, to, len(times) * peers)
            with gathered.taken() as capability:
                for number, time in enumerate(times):
                    self._records[port].give(capability, Parts(parts[number * peers : (number + 1) * peers]), at=time)

    def _select(self, port: int, batch: Batch) -> Columns:
        wanted = self._wanted[port].columns
        columns = require_columns(batch, self._context.name)
        return columns if wanted is None else columns.select(wanted)

    def _divide(
        self, time: Time, port: int, columns: Columns, overrides: WordOverrides
    ) -> tuple[Parts, Parts]:
        """The records whose keys are in their bins, and those whose keys are apart."""
        name = self._wanted[port].key
        keys = as_words(columns[name], name)
        to = np.empty(len(keys), np.uint16)
        owners = self._owners_at(time)
        route_apart(
            keys, self._dense, self._by, owners.words, owners.width, overrides.slots, overrides.owners, self._peers, to
        )
        parts = split(columns, to, 2 * self._peers)
        return Parts(parts[: self._peers]), Parts([mark(part) for part in parts[self._peers :]])

    def route(self, time: Time, port: int, batch: Batch) -> Parts:
        columns = self._select(port, batch)
        if self._peers == 1:
            return Parts([columns])
        return Parts(split(columns, self._owners_of(time, port, columns), self._peers))

    def _owners_of(self, time: Time, port: int, columns: Columns) -> NDArray[np.uint16]:
        """To whom each record goes."""
        name = self._wanted[port].key
        keys = as_words(columns[name], name)
        to = np.empty(len(keys), np.uint16)
        owners = self._owners_at(time)
        self._find(keys, self._by, owners.words, owners.width, to)
        return to

    def _owners_at(self, time: Time) -> Owners:
        table = self._configurations.at(time)
        if table is not self._table:  # tables are never changed: of each there is one packed form
            self._table, self._owners = table, Owners(table, self._peers)
        return self._owners


class KeylessRouter(ColumnRouter):
    """F for records without a key: all go where the one bin is."""

    def _owners_of(self, time: Time, port: int, columns: Columns) -> NDArray[np.uint16]:
        return np.full(len(columns), self._configurations.at(time)[0], np.uint16)
