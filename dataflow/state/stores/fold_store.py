"""The state of a stateful operator on one worker: a table, post-dated records, and the folds that change them.

Native operators and Megaphone's S are two hosts of this: it knows nothing of workers, routing or migration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dataflow.channels.blame import name_record
from dataflow.columns.batch import Column, Columns
from dataflow.columns.conversions import KeySigns, as_kind
from dataflow.columns.hashing import as_words
from dataflow.errors import ConstructionError
from dataflow.state.arrays import Bins, Values, Words
from dataflow.state.folds.driver import FoldDriver
from dataflow.state.folds.fold import LAST_SEEN, Fold, FoldError
from dataflow.state.memory import allocation
from dataflow.state.stores import spelled
from dataflow.state.stores.with_pending import WithPending
from dataflow.state.tables.one_key import rows_found
from dataflow.state.tables.pending import Pending
from dataflow.state.tables.table import Dense, DenseTable, make_table
from dataflow.state.values import Key

_FEW = 1 << 13  # rows: to call a loop once more costs more than to copy these


@dataclass(frozen=True)
class Side:
    """One input: its key column, its value columns, the fold that takes it, and the order of its records at a time."""

    key: str | Sequence[str]  # several names only until they are spelled out: see `spelled`
    value: str | Sequence[str] | None
    fold: Fold
    order: Sequence[str] = ()
    spelled_by: tuple[str, ...] = ()  # the columns of a key that is spelled out

    @property
    def names(self) -> tuple[str, ...]:
        """The value columns."""
        if self.value is None:
            return ()
        return (self.value,) if isinstance(self.value, str) else tuple(self.value)

    @property
    def by(self) -> str:
        """The one key column."""
        assert isinstance(self.key, str), "several are spelled out"
        return self.key

    @property
    def spelling(self) -> tuple[str, ...]:
        """The columns that spell the key out."""
        return tuple(spelled.column_of(number) for number in range(self.fold.spelled))

    @property
    def carried(self) -> tuple[str, ...]:
        """The key columns themselves, if each record gives one row with its key: that is cheaper than to make them of
        their spelling again."""
        if not (self.fold.key_outputs and self.fold.is_one_for_one):
            return ()
        return tuple(f"{spelled.WORD} of {number}" for number in range(len(self.spelled_by)))

    @property
    def alone(self) -> bool:
        """Whether the fold's `value` is the one column itself."""
        return isinstance(self.value, str)


class FoldStore(WithPending):
    """State by key, changed by folds. `due` is the fold of post-dated records."""

    def __init__(
        self,
        name: str,
        sides: Sequence[Side],
        due: Fold | None,
        bins: int,
        dense: Dense | None,
        counts_once: bool = False,  # whether bins count records when they come only, and not again when they are due
    ) -> None:
        self.name = name
        self.sides = sides
        folds = [*(side.fold for side in sides), *([due] if due is not None else [])]
        _check_together(name, folds, due, dense)
        self.table = make_table(bins, folds[0].state, dense)
        pending = next((fold.pending for fold in folds if "later" in fold.parameters), {})
        posts = any("later" in fold.parameters for fold in folds)
        self.pending = Pending(bins, pending) if posts else None
        self._drivers = [
            FoldDriver(side.fold, side.names or None, self.table, side.alone, spelled=side.fold.spelled)
            for side in sides
        ]
        self._due: FoldDriver | None = None
        if due is not None and posts:
            self._due = FoldDriver(due, tuple(pending) or None, self.table, len(pending) == 1, pending)
        self.upgrade = next((fold.upgrade for fold in folds if fold.upgrade is not None), None)
        self._signs = KeySigns()
        self.output = tuple(folds[0].output)
        self.counts_once = counts_once
        # Whether hosts may use `fire` (what is due must not post-date more, perhaps to the same times), `run_all`
        self.fires_together = self._due is not None and "later" not in self._due.fold.parameters
        self.ttl = folds[0].ttl
        self._swept: tuple[int, int] | None = None  # up to when, and the bin that is next
        self.changes_by_row = all(fold.forget is None for fold in folds) and self.ttl is None
        self.undoes_changes = self.changes_by_row and self.pending is None and not self.table.segments.deep
        self.takes_together = self.pending is None and len(sides) == 1 and self.ttl is None

    def run(self, time: int, batches: Sequence[Sequence[Columns]]) -> list[Columns]:
        """Applies everything at a time: the batches of each input in turn, then what was post-dated to it."""
        results = self.receive(time, batches)
        if self.ttl is not None:
            self._sweep(time, self.ttl)
        least = self.least_pending
        return results + self._fire(time) if least is not None and least <= time else results

    def receive(self, time: int, batches: Sequence[Sequence[Columns]]) -> list[Columns]:
        """Applies the batches of a time, those of each input in turn."""
        self.prefault_ahead()
        return [out for port, parts in enumerate(batches) if parts for out in self._receive(port, time, parts)]

    def _sweep(self, time: int, ttl: int) -> None:
        """Removes keys that have expired: all bins are gone through once within a `ttl`. Nobody could tell, but for the
        memory: a record finds a key that has expired as good as new."""
        began, bin = self._swept or (time, 0)
        due = min((time - began) * self.bins // ttl, self.bins)
        for number in range(bin, bin + due):
            keys, rows = self.table.scan_bin(number % self.bins)
            if len(keys):
                last = self.table[LAST_SEEN][rows]
                gone = keys[(last != 0) & (time - last >= ttl)]
                if len(gone):
                    self.table.forget(gone)
        self._swept = (time if due == self.bins else began + due * ttl // self.bins), (bin + due) % self.bins

    def can_take_together(self, batches: Sequence[Sequence[Columns]]) -> bool:
        return Columns.alike([batch for parts in batches for batch in parts])

    def run_all(self, times: Sequence[int], batches: Sequence[Sequence[Columns]]) -> list[list[Columns]]:
        """Keys and values are converted for all times at once: for few records that costs as much as for one time."""
        lengths = [sum(map(len, parts)) for parts in batches]
        batch = Columns.concat([batch for parts in batches for batch in parts])
        self.prefault_ahead()
        order = self.sides[0].order
        if order:
            numbers = np.repeat(np.arange(len(times)), lengths)
            batch = batch.take(np.lexsort([*(batch[name] for name in reversed(order)), numbers]))
        return self._run_parts(self._drivers[0], times, np.cumsum(lengths), *self._columns(0, batch))

    def fire(self, until: int) -> list[tuple[int, list[Columns]]]:
        """Applies what was post-dated to times up to one, in their order, or to the first of them if that is much: what
        comes out at each."""
        assert self.pending is not None and self._due is not None
        self.prefault_ahead()
        dates, keys, values = self.pending.due_first(until)
        ends = np.append(np.flatnonzero(dates[1:] != dates[:-1]) + 1, len(dates))
        times: list[int] = dates[ends - 1].tolist()
        with self._counted_before(keys):
            return list(zip(times, self._run_parts(self._due, times, ends, keys, values, ()), strict=True))

    def _run_parts(
        self,
        driver: FoldDriver,
        times: Sequence[int],
        ends: Bins,
        keys: Words,
        values: Sequence[Values],
        carried: Sequence[Column],
    ) -> list[list[Columns]]:
        bounds = [0, *ends.tolist()]
        parts = list(zip(times, bounds[:-1], bounds[1:], strict=True))
        if not driver.fold.is_one_for_one:
            return [self._run(driver, time, keys[a:b], [column[a:b] for column in values], ()) for time, a, b in parts]

        def time_of(at: int) -> int:
            return times[int(np.searchsorted(ends, at, "right"))]

        results = self._run(driver, times[0], keys, values, carried, time_of)
        return [[out.slice(a, b) for out in results if a < b] for _, a, b in parts]

    def _receive(self, port: int, time: int, batches: Sequence[Columns]) -> list[Columns]:
        order = self.sides[port].order
        if order:
            joined = Columns.concat(batches)
            batches = [joined.take(np.lexsort([joined[name] for name in reversed(order)]))]
        elif len(batches) > 1 and sum(map(len, batches)) < _FEW:
            batches = [Columns.concat(batches)]
        return [out for batch in batches for out in self._apply(port, time, batch)]

    def _apply(self, port: int, time: int, batch: Columns) -> list[Columns]:
        return self._run(self._drivers[port], time, *self._columns(port, batch))

    def _columns(self, port: int, batch: Columns) -> tuple[Words, list[Values], list[Column]]:
        """The keys of a batch and its values, as the fold's driver wants them; key columns that are carried along."""
        side, driver = self.sides[port], self._drivers[port]
        values = [
            as_kind(batch[name], kind, self.name, name, unit)
            for name, kind, unit in zip(side.names, driver.kinds, driver.units, strict=True)
        ]
        key = batch[side.by]
        words = as_words(key, side.by)
        self._signs.check(key, words, f"{self.name}: the key {side.by!r}")
        values += [np.ascontiguousarray(batch[name]) for name in side.spelling]
        return words, values, [batch.column(name) for name in side.carried]

    def _fire(self, time: int) -> list[Columns]:
        """A fold may post-date more, for later times."""
        assert self.pending is not None and self._due is not None
        keys, values = self.pending.due(time)
        with self._counted_before(keys):
            return self._run(self._due, time, keys, values, ())

    @contextmanager
    def _counted_before(self, keys: Words) -> Iterator[None]:
        """Around the application of records that are due: with `counts_once` their bins' counts stay as they are, since
        these records were counted when they came."""
        if not self.counts_once:
            yield
            return
        bins = self.table.bins_of(keys)
        counted = self.table.records[bins]
        yield
        self.table.records[bins] = counted

    def _run(
        self,
        driver: FoldDriver,
        time: int,
        keys: Words,
        values: Sequence[Values],
        carried: Sequence[Column],
        time_of: Callable[[int], int] | None = None,  # of a record, where they are of several times
    ) -> list[Columns]:
        if isinstance(self.table, DenseTable):
            self.table.check(keys)
        self.table.mark(keys)
        spelt = self._spelt(driver, keys, values)
        try:
            out, later = driver.apply(time, keys, values)
        except Exception as error:
            at = int(self.table.ctl[allocation.AT])
            if at < len(keys):
                bin = int(self.table.bins_of(keys[at : at + 1])[0])
                when = time if time_of is None else time_of(at)
                key: Key = int(keys[at].view(np.int64))
                if spelt:
                    (key,) = spelled.keys_of(np.stack([words[at : at + 1] for words in spelt]))
                error.add_note(f"in {self.name}, for the key {key!r}, in bin {bin} at {when!r}")
                name_record(error, (key, *(column[at].item() for column in values[: len(driver.kinds)])), time=when)
            raise
        if spelt and out is not None and driver.fold.key_outputs:
            out = spelled.name_keys(out, driver.fold, self.sides[0].spelled_by, keys, spelt, carried)
        if later.size:
            self._postpone(driver, time, later)
        return [out] if out is not None and len(out) else []

    def _spelt(self, driver: FoldDriver, keys: Words, values: Sequence[Values]) -> Sequence[Words]:
        """How the keys of records are spelled, if they are; of what is due, the table knows it."""
        if driver.spelled:
            return [words.view(np.uint64) for words in values[-driver.spelled :]]
        if not driver.fold.spelled:
            return ()
        rows = rows_found(self.table, keys)
        there = np.maximum(rows, 0)
        return [np.where(rows < 0, 0, self.table[field][there]) for field in spelled.fields_of(driver.fold.spelled)]

    def _postpone(self, driver: FoldDriver, time: int, rows: Words) -> None:
        assert self.pending is not None
        table = rows.reshape(-1, self.pending.stride)
        first = int(table[:, 0].view(np.int64).min())
        if first <= time:
            raise ValueError(
                f"{driver.fold.name} post-dates a record to {first} at {time}: a record can be put off until later only"
            )
        self.pending.add(rows, self.table.bins_of(np.ascontiguousarray(table[:, 1])))


def _check_together(name: str, folds: Sequence[Fold], due: Fold | None, dense: Dense | None) -> None:
    for fold in folds:
        if not isinstance(fold, Fold):
            raise ConstructionError(f"{name}: columns need a fold made with megaphone.fold(...), not {fold!r}")
        if not folds[0].same_state(fold):
            raise FoldError(f"{name}: {folds[0].name} and {fold.name} declare different state, and work on the same")
        if folds[0].output and fold.output and folds[0].output != fold.output:
            raise FoldError(f"{name}: {folds[0].name} and {fold.name} declare different output")
        if "later" in fold.parameters and due is None:
            raise FoldError(
                f"{name}: {fold.name} post-dates records, and the operator has no fold for them: say due=..."
            )
        if not fold.create and dense is not None:
            raise FoldError(f"{name}: {fold.name} says create=False, and dense keys always exist")
    pendings = [fold.pending for fold in folds if "later" in fold.parameters]
    if any(pending != pendings[0] for pending in pendings):
        raise FoldError(f"{name}: its folds declare different columns of post-dated records")
