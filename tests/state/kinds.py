"""Every kind of store, with a plain program that says what it should hold and give."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dataflow.columns import Columns
from dataflow.columns.pact import key_words
from dataflow.state.folds.fold import fold
from dataflow.state.store import Store
from dataflow.state.stores.batch_store import BatchStore
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.stores.join_store import JoinStore
from dataflow.state.stores.row_store import RowStore
from dataflow.state.tables.table import Dense
from megaphone.control.replans import Replan
from megaphone.keys.hashing import bin_of, mix, shift_of
from megaphone.keys.pinning import PinningStore, mark
from megaphone.plans.columns.pairs import PairStore
from megaphone.plans.columns.store import PlanColumnStore
from megaphone.plans.join_bin import JoinBins
from megaphone.plans.query import Query
from megaphone.plans.row_store import PlanRowStore

Record = tuple[int, int]  # key and value
KEYS = 60
WINDOW = 4  # of joins that have one


@fold(state={"total": "i8"}, output={"key": "i8", "total": "i8"}, compiled=False)
def add(key, value, state):
    state.total += value
    return key, state.total


@fold(state={"total": "i8"}, output={"key": "i8", "total": "i8"}, pending={"back": "i8"}, compiled=False)
def add_and_put_off(time, key, value, state, emit, later):
    state.total += value
    if value % 2:
        later.at(time + value, value)


@fold(state={"total": "i8"}, output={"key": "i8", "total": "i8"}, pending={"back": "i8"}, compiled=False)
def come_back(key, value, state, emit):
    state.total -= value
    emit.row(key, value)


def add_rows(time: int, records: list[list[Record]], state: dict[int, int], postponer: Any) -> Iterable[Any]:
    """Totals by key; records with an odd value come back with a negative one."""
    for key, value in records[0]:
        state[key] = state.get(key, 0) + value
        if value > 0 and value % 2:
            postponer.notify_at(time + value, (key, -value))
        elif value < 0:
            yield key, -value


def add_batch(time: int, batch: Columns, state: Any, notificator: Any) -> Any:
    """The same of whole batches."""
    if len(batch):
        values = batch["value"]
        np.add.at(state["total"], state.rows(key_words(batch["key"])), values)
        odd = values % 2 == 1
        notificator.notify_at(time + values[odd], batch["key"][odd], back=values[odd])
    due = notificator.due
    out = []
    for key, back in zip(due["key"].tolist(), due["back"].tolist(), strict=True):
        row = state.rows(np.array([key]).view(np.uint64))
        state["total"][row] -= back
        out.append((key, back))
    return {"key": [k for k, _ in out], "total": [t for _, t in out]} if out else None


def put_batch_off(time: int, batch: Columns, state: Any, notificator: Any) -> Any:
    """Remembers records until they are due, and nothing else: bins have post-dated records and no rows."""
    if len(batch):
        notificator.notify_at(time + batch["value"], batch["key"], back=batch["value"])
    due = notificator.due
    return {"key": due["key"], "total": due["back"]} if len(due) else None


class Kind(ABC):
    """A kind of store. `inputs`: how many it has. `restless`: bins change that have no key with a record or anything
    due."""

    inputs = 1
    restless = False

    def __init__(self, name: str, make: Callable[[int], Store[Any]]) -> None:
        self.name = name
        self.make = make

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def bins_of(self, store: Store[Any], keys: list[int]) -> list[int]:
        """The bin of each key."""

    @abstractmethod
    def batch(self, store: Store[Any], port: int, records: list[Record], apart: bool = False) -> Any:
        """Records as the store takes them."""

    @abstractmethod
    def rows(self, batches: Iterable[Any]) -> Counter[Any]:
        """What came out."""

    @abstractmethod
    def model(self) -> Model:
        """A new program that says what should be."""


class Model(ABC):
    """What a store should hold and give: obviously right, and slow."""

    @abstractmethod
    def run(self, time: int, inputs: list[list[Record]]) -> Counter[Any]:
        """Applies everything at a time."""

    @abstractmethod
    def state(self) -> dict[int, Any]:
        """By key, what `BinView.entries` should say."""

    def pending(self) -> Counter[Any]:
        """Post-dated records: (time, key)."""
        return Counter()


class Totals(Model):
    """Totals by key. `puts_off`: odd values come back, and only those that do come out."""

    def __init__(self, puts_off: bool, as_rows: bool) -> None:
        self._totals: dict[int, int] = {}
        self._later: dict[int, list[Record]] = defaultdict(list)
        self._puts_off = puts_off
        self._as_rows = as_rows

    def run(self, time: int, inputs: list[list[Record]]) -> Counter[Any]:
        out: Counter[Any] = Counter()
        for key, value in inputs[0]:
            self._totals[key] = self._totals.get(key, 0) + value
            if not self._puts_off:
                out[key, self._totals[key]] += 1
            elif value % 2:
                self._later[time + value].append((key, value))
        for key, value in self._later.pop(time, ()):
            self._totals[key] -= value
            out[key, value] += 1
        return out

    def state(self) -> dict[int, Any]:
        return {key: total if self._as_rows else {"total": total} for key, total in self._totals.items()}

    def pending(self) -> Counter[Any]:
        return Counter((time, key) for time, records in self._later.items() for key, _ in records)


class Delays(Model):
    """Every record comes out after as many times as its value says."""

    def __init__(self) -> None:
        self._later: dict[int, list[Record]] = defaultdict(list)

    def run(self, time: int, inputs: list[list[Record]]) -> Counter[Any]:
        for key, value in inputs[0]:
            self._later[time + value].append((key, value))
        return Counter(self._later.pop(time, ()))

    def state(self) -> dict[int, Any]:
        return {}

    def pending(self) -> Counter[Any]:
        return Counter((time, key) for time, records in self._later.items() for key, _ in records)


class Pairs(Model):
    """Every pair of a left and a right record with equal keys."""

    def __init__(self) -> None:
        self._sides: list[dict[int, list[int]]] = [{}, {}]

    def run(self, time: int, inputs: list[list[Record]]) -> Counter[Any]:
        out: Counter[Any] = Counter()
        for side, records in enumerate(inputs):
            for key, value in records:
                for other in self._sides[1 - side].get(key, ()):
                    out[(key, value, other) if side == 0 else (key, other, value)] += 1
            for key, value in records:
                self._sides[side].setdefault(key, []).append(value)
        return out

    def state(self) -> dict[int, Any]:
        keys = {key for side in self._sides for key in side}
        left, right = self._sides
        return {
            key: {"left": [{"a": v} for v in left.get(key, ())], "right": [{"b": v} for v in right.get(key, ())]}
            for key in keys
        }


class Combinations(Model):
    """Every combination of a record of each stream with equal keys, within a window of times. Everything is looked at,
    and forgotten, once in each time."""

    def __init__(self, streams: str, window: int) -> None:
        self._window = window
        self._held: dict[str, list[tuple[int, Record]]] = {stream: [] for stream in streams}
        self._now = -1

    def run(self, time: int, inputs: list[list[Record]]) -> Counter[Any]:
        self._now = time
        for held, records in zip(self._held.values(), inputs, strict=True):
            held[:] = [(t, record) for t, record in held if t >= time - self._window]
            held += [(time, record) for record in records]
        found = itertools.product(*self._held.values())
        out = Counter(
            tuple(record for _, record in parts)
            for parts in found
            if max(t for t, _ in parts) == time and len({record[0] for _, record in parts}) == 1
        )
        for held in self._held.values():
            held[:] = [(t, record) for t, record in held if t > time - self._window]
        return out

    def state(self) -> dict[int, Any]:
        keys = {record[0] for held in self._held.values() for _, record in held}
        return {key: {s: [p for p in held if p[1][0] == key] for s, held in self._held.items()} for key in keys}

    def pending(self) -> Counter[Any]:
        return Counter((self._now + 1, key) for key in self.state())


class InRows(Kind):
    """State in Python objects."""

    def bins_of(self, store: Store[Any], keys: list[int]) -> list[int]:
        return [bin_of(key, shift_of(store.bins)) for key in keys]

    def batch(self, store: Store[Any], port: int, records: list[Record], apart: bool = False) -> Any:
        bins = self.bins_of(store, [key for key, _ in records])
        return [((record[0],) if apart else bin, record) for bin, record in zip(bins, records, strict=True)]

    def rows(self, batches: Iterable[Any]) -> Counter[Any]:
        return Counter(row for batch in batches for row in batch)

    def model(self) -> Model:
        return Totals(puts_off=True, as_rows=True)


class JoinsInRows(InRows):
    """Windowed joins of Python objects."""

    def __init__(self, name: str, make: Callable[[int], Store[Any]], streams: str, restless: bool = False) -> None:
        super().__init__(name, make)
        self._streams = streams
        self.inputs = len(streams)
        self.restless = restless

    def model(self) -> Model:
        return Combinations(self._streams, WINDOW)


class InColumns(Kind):
    """State in columns."""

    def __init__(self, name: str, make: Callable[[int], Store[Any]], make_model: Callable[[], Model], inputs: int = 1):
        super().__init__(name, make)
        self._make_model = make_model
        self.inputs = inputs

    def bins_of(self, store: Store[Any], keys: list[int]) -> list[int]:
        table = store.home.table if isinstance(store, PinningStore) else store.table  # type: ignore[attr-defined]
        return list(table.bins_of(np.array(keys, np.int64).view(np.uint64)).tolist())

    def batch(self, store: Store[Any], port: int, records: list[Record], apart: bool = False) -> Any:
        value = "value" if self.inputs == 1 else ("a", "b")[port]
        both = np.array(records, np.int64).reshape(-1, 2)
        batch = Columns({"key": both[:, 0].copy(), value: both[:, 1].copy()})
        return mark(batch) if apart else batch

    def rows(self, batches: Iterable[Any]) -> Counter[Any]:
        return Counter(row for batch in batches for row in batch.rows())

    def model(self) -> Model:
        return self._make_model()


def _row_store(bins: int) -> RowStore:
    shift = shift_of(bins)
    return RowStore("rows", bins, [lambda record: record[0]], lambda key: bin_of(key, shift), dict, add_rows)


def _folds(bins: int, dense: Dense | None = None, late: bool = False) -> FoldStore:
    used, due = (add_and_put_off, come_back) if late else (add, None)
    return FoldStore("folds", [Side("key", "value", used)], due, bins, dense)


def _batches(bins: int) -> BatchStore:
    return BatchStore("batches", ("key",), add_batch, {"total": "i8"}, {"back": "i8"}, bins, None)


def _delays(bins: int) -> BatchStore:
    return BatchStore("delays", ("key",), put_batch_off, {"total": "i8"}, {"back": "i8"}, bins, None)


def _joins(bins: int) -> JoinStore:
    return JoinStore("joins", ("key", "key"), (("a",), ("b",)), None, bins)


def _window_joins(bins: int) -> PlanRowStore:
    query = Query(("a", "b"), WINDOW, on=0)
    return PlanRowStore("windowed joins", bins, JoinBins(query, query.plan("a b")))


class JoinsInColumns(Kind):
    """Windowed joins of columns."""

    def __init__(self, name: str, make: Callable[[int], Store[Any]], streams: str, restless: bool = False) -> None:
        super().__init__(name, make)
        self._streams = streams
        self.inputs = len(streams)
        self.restless = restless

    def bins_of(self, store: Store[Any], keys: list[int]) -> list[int]:
        return [mix(key) >> shift_of(store.bins) for key in keys]

    def batch(self, store: Store[Any], port: int, records: list[Record], apart: bool = False) -> Any:
        both = np.array(records, np.int64).reshape(-1, 2)
        batch = Columns({"key": both[:, 0].copy(), "value": both[:, 1].copy()})
        return mark(batch) if apart else batch

    def rows(self, batches: Iterable[Any]) -> Counter[Any]:
        return Counter(tuple(zip(row[::2], row[1::2], strict=True)) for batch in batches for row in batch.rows())

    def model(self) -> Model:
        return NamedCombinations(self._streams, WINDOW)


class NamedCombinations(Combinations):
    """The same, with the names of columns."""

    def state(self) -> dict[int, Any]:
        return {
            key: {name: [(t, {"key": k, "value": v}) for t, (k, v) in some] for name, some in streams.items()}
            for key, streams in super().state().items()
        }


class ChangingPlans:
    """A store that changes the plans of its bins again and again, and works in the background in between."""

    def run(self, time: Any, batches: Any) -> Any:
        plans = [("a (b c)", "hybmig"), ("(a c) b", "parallel-track"), ("(a b) c", "hybmig")]
        if time % 3 == 1 and len(self.occupied()):  # type: ignore[attr-defined]
            self.note(time, self.occupied().astype(np.int64), Replan(*plans[time // 3 % 3]))
        results = super().run(time, batches)
        if time % 2 and self.next_work is not None:
            self.work(5)
        return results


class Replanned(ChangingPlans, PlanRowStore):
    """Such a store of rows."""


class ReplannedColumns(ChangingPlans, PlanColumnStore):
    """Such a store of columns."""


def _window_joins_of_columns(bins: int) -> PlanColumnStore:
    query = Query(("a", "b"), WINDOW, on="key")
    return PlanColumnStore("windowed joins", bins, query, query.plan("a b"))


def _pairs(bins: int) -> PairStore:
    return PairStore("windowed joins", bins, Query(("a", "b"), WINDOW, on="key"))


def _replanned_columns(bins: int) -> PlanColumnStore:
    query = Query(("a", "b", "c"), WINDOW, on="key")
    return ReplannedColumns("windowed joins", bins, query, query.plan("(a b) c"))


def _replanned(bins: int) -> PlanRowStore:
    query = Query(("a", "b", "c"), WINDOW, on=0)
    return Replanned("windowed joins", bins, JoinBins(query, query.plan("(a b) c")))


def plain_totals() -> Model:
    return Totals(puts_off=False, as_rows=False)


def late_totals() -> Model:
    return Totals(puts_off=True, as_rows=False)


KINDS: list[Kind] = [
    InRows("rows", _row_store),
    InColumns("folds", _folds, plain_totals),
    InColumns("dense folds", lambda bins: _folds(bins, Dense(KEYS)), plain_totals),
    InColumns("folds that post-date", lambda bins: _folds(bins, late=True), late_totals),
    InColumns("batches", _batches, late_totals),
    InColumns("batches that only post-date", _delays, Delays),
    InColumns("joins", _joins, Pairs, inputs=2),
    JoinsInRows("windowed joins", _window_joins, "ab"),
    JoinsInRows("windowed joins that are replanned", _replanned, "abc", restless=True),
    JoinsInColumns("windowed joins of columns", _window_joins_of_columns, "ab"),
    JoinsInColumns("windowed joins of columns that are replanned", _replanned_columns, "abc", restless=True),
]
PINNING: list[Kind] = [
    KINDS[0],
    InColumns("pinning folds", lambda bins: PinningStore(lambda apart: _folds(bins, late=True)), late_totals),
    InColumns(
        "pinning dense folds",
        lambda bins: PinningStore(lambda apart: _folds(bins, None if apart else Dense(KEYS), late=True)),
        late_totals,
    ),
    InColumns("pinning batches", lambda bins: PinningStore(lambda apart: _batches(bins)), late_totals),
    InColumns("pinning batches that only post-date", lambda bins: PinningStore(lambda apart: _delays(bins)), Delays),
    InColumns("pinning joins", lambda bins: PinningStore(lambda apart: _joins(bins)), Pairs, inputs=2),
    JoinsInColumns("pinning windowed joins", lambda bins: PinningStore(lambda apart: _pairs(bins)), "ab"),
]
