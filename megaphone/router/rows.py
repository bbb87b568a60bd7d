"""F for rows: records are any objects, and each goes with its place."""

from __future__ import annotations

from collections.abc import Sequence

from dataflow.channels.blame import name_last, name_time
from dataflow.channels.pact import Batch
from dataflow.lowlevel import Context
from dataflow.state.stores.row_store import KeyOf, Rows
from dataflow.state.values import Key, Record
from dataflow.time.order import Time
from megaphone.control.arranging import Arrangement
from megaphone.control.configuration import Table
from megaphone.keys.hashing import Binning
from megaphone.keys.keyspace import RowKeys, RowOverrides
from megaphone.router.routing import Parts, Router, Shared


class RowRouter(Router[Rows]):
    """F for rows. A record goes with its place: the number of its bin; or its key, in a tuple, if that lives apart."""

    def __init__(
        self, context: Context, shared: Shared[Rows], initial: Arrangement, key_of: Sequence[KeyOf], keys: RowKeys
    ) -> None:
        super().__init__(context, shared, initial, len(key_of), keys)
        self._key_of = key_of  # one per data input
        self._table: Table | None = None
        self._binnings = [Binning(key, keys.shift, keys.own) for key in key_of]
        self._owners: list[int] = []  # of _table: a list is faster to look into, one by one

    def route(self, time: Time, port: int, batch: Batch) -> Parts:
        owners = self._owners_at(time)
        overrides = self._configurations.overrides_at(time)
        parts = self._no_parts()
        try:
            if overrides is not None:
                assert isinstance(overrides, RowOverrides)  # as RowKeys makes them
                batch = place_apart(batch, self._key_of[port], overrides.workers, parts)
            place(batch, self._binnings[port], owners, parts)
        except Exception as error:
            name_time(error, time)
            raise
        return Parts(parts)

    def _owners_at(self, time: Time) -> list[int]:
        table = self._configurations.at(time)
        if table is not self._table:
            self._table, self._owners = table, table.tolist()
        return self._owners

    def _no_parts(self) -> list[Rows]:
        return [[] for _ in range(self._context.span)]


def place(batch: Batch, binning: Binning, owners: list[int], parts: list[Rows]) -> None:
    """Puts records with the bins of their keys where those are."""
    for pair in zip(binning.bins(batch), batch, strict=True):
        parts[owners[pair[0]]].append(pair)


def place_apart(batch: Batch, key_of: KeyOf, workers: dict[Key, int], parts: list[Rows]) -> list[Record]:
    """Puts records whose keys live apart where these do; the others."""
    rest: list[Record] = []
    records = iter(batch)
    try:
        for record in records:
            key = key_of(record)
            try:
                worker = workers.get(key)
            except TypeError:  # a key that has no hash: the others' hashing says so in more words
                worker = None
            if worker is None:
                rest.append(record)
            else:
                parts[worker].append(((key,), record))
    except Exception as error:
        name_last(error, batch, records)
        raise
    return rest
