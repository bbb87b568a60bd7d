"""The programs that run with the loop on. A program is the records of each epoch, and a dataflow for them.

Each stateful operator has a control stream of its own, and an artificial cost per record that it applies. The cost is a
wait, not work: it lasts as long as an instance with a core of its own would be busy. So the imbalance of two workers
shows on any machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

import megaphone
import megaphone.plans
from bench.skew import fluctuate, frequencies, intervals, sample, social, stock, tpch
from bench.skew.queries import ColumnStream, FoldOptions, JoinOptions, q5, self_join, word_count
from bench.skew.tpch import DAYS, Numbers, Q5Tables
from dataflow import InputHandle, Scope, Stream
from dataflow.columns import Columns
from dataflow.columns.hashing import mix_all
from dataflow.state import native as stateful
from megaphone.assembly import Migratable
from megaphone.keys.pinning import PinningStore
from planners.rebalance import pkg

BINS, SHIFT, WORKERS = 256, 56, 2
Floats = NDArray[np.float64]
INTERVAL = 0.1  # seconds between reports of statistics
T = TypeVar("T")
Tables = dict[str, dict[str, NDArray[np.int64]]]  # by input, its columns
Run = Callable[[int, list[list[Columns]]], T]


@dataclass(frozen=True)
class Shape:
    """How much flows, and how it changes."""

    z: float = 1.0
    f: float = 0.5
    keys: int = 10_000
    intervals: int = 3
    epochs: int = 150  # of an interval
    records: int = 2_000  # of an epoch, by all workers
    shuffled: bool = False  # the ideal: keys are drawn evenly, whatever the data
    window: int | None = None  # epochs: words that were not seen for so long are forgotten
    seed: int = 1


class Program(Protocol):
    """A workload as a dataflow."""

    inputs: tuple[str, ...]

    def epochs(self, shape: Shape) -> Iterator[Tables]:
        """What all workers send together, epoch by epoch: the same on every worker."""

    def build(self, streams: dict[str, ColumnStream], keep: Steered) -> Stream[Columns]:
        """The dataflow."""


class Busy:
    """A worker that takes `cost` seconds for a record: when the work itself took less, it waits for the rest.

    Waits end late, by a tenth of a millisecond or so: the next wait is shorter by what this one took too long.
    """

    def __init__(self, cost: float) -> None:
        self._cost = cost
        self._owed = 0.0  # seconds; below 0 if more has been taken than records cost

    def apply(self, run: Run[T], now: int, batches: list[list[Columns]]) -> T:
        """Applies records as `run` does, in the time that they cost."""
        with self.work(sum(len(batch) for parts in batches for batch in parts)):
            return run(now, batches)

    @contextmanager
    def work(self, records: int) -> Iterator[None]:
        """Work on so many records."""
        began = time.perf_counter()
        yield
        self._owed += self._cost * records
        left = self._owed - (time.perf_counter() - began)
        if left > 0:
            time.sleep(left)
        self._owed -= time.perf_counter() - began


class Steered:
    """Stateful operators, each with its control input, at a cost of so many seconds per record."""

    def __init__(self, scope: Scope, cost: float, window: int | None = None) -> None:
        self._scope = scope
        self.cost = cost
        self.window = window
        self.alone: Callable[[], bool] = lambda: False  # whether worker 0 has everything, for now
        self.made: list[tuple[InputHandle, Migratable]] = []

    def state_machine(self, stream: ColumnStream, /, **options: Unpack[FoldOptions]) -> Migratable:
        """As `dataflow.state.native.state_machine`."""
        control, updates = self._control()
        return self._keep(control, megaphone.state_machine(updates, stream, bins=BINS, interval=INTERVAL, **options))

    def window_join(
        self, streams: Mapping[str, ColumnStream], query: megaphone.plans.Query, *, name: str
    ) -> Migratable:
        """As `megaphone.window_join`, of two streams."""
        control, updates = self._control()
        plan = " ".join(query.streams)
        made = megaphone.window_join(updates, streams, query, plan=plan, bins=BINS, interval=INTERVAL, name=name)
        return self._keep(control, made)

    def join(self, left: ColumnStream, right: ColumnStream, /, **options: Unpack[JoinOptions]) -> Migratable:
        """As `dataflow.state.native.join`."""
        control, updates = self._control()
        return self._keep(control, megaphone.join(updates, left, right, bins=BINS, interval=INTERVAL, **options))

    def _control(self) -> tuple[InputHandle, ColumnStream]:
        return self._scope.input(f"control {len(self.made)}")

    def _keep(self, control: InputHandle, operator: Migratable) -> Migratable:
        both = operator.handle.store
        assert isinstance(both, PinningStore)
        busy = Busy(self.cost)
        for store in (both.home, both.apart):
            store.run = partial(busy.apply, store.run)
        self.made.append((control, operator))
        return operator


def homes(keys: int) -> NDArray[np.int32]:
    """Where hashing puts each key: the worker of its bin."""
    hashes = np.empty(keys, np.uint64)
    mix_all(np.arange(keys, dtype=np.uint64), hashes)
    return ((hashes >> np.uint64(SHIFT)) % np.uint64(WORKERS)).astype(np.int32)


class Words:
    """Counts of words: synthetic ones that fluctuate, or those of a social network."""

    inputs: tuple[str, ...] = ("words",)

    def __init__(self, social: bool = False) -> None:
        self._social = social

    def build(self, streams: dict[str, ColumnStream], keep: Steered) -> Stream[Columns]:
        return word_count(streams["words"], keep, keep.window)

    def epochs(self, shape: Shape) -> Iterator[Tables]:
        for words in self._intervals(shape):
            yield from ({"words": {"word": part}} for part in np.split(words, shape.epochs))

    def _intervals(self, shape: Shape) -> Iterator[NDArray[np.int64]]:
        each = shape.epochs * shape.records
        rng = np.random.default_rng(shape.seed)
        if shape.shuffled:
            yield from (rng.integers(0, shape.keys, each) for _ in range(shape.intervals))
        elif self._social:
            made = social(each, words=shape.keys, z=shape.z, intervals=shape.intervals, seed=shape.seed)
            yield from (part["word"] for part in made)
        else:
            chances = intervals(
                shape.keys, shape.z, shape.f,
                assignment=homes(shape.keys), instances=WORKERS, records=each, seed=shape.seed,
            )  # fmt: skip
            yield from (sample(next(chances), each, rng) for _ in range(shape.intervals))


class SplitWords(Words):
    """The same under partial key grouping: no state moves, and partial counts are merged downstream, at a cost."""

    def build(self, streams: dict[str, ColumnStream], keep: Steered) -> Stream[Columns]:
        router = pkg(WORKERS)
        to = np.array([_word_of(worker) for worker in range(WORKERS)], np.int64)

        def route(batch: Columns) -> dict[str, NDArray[np.int64]]:
            both = not keep.alone()
            return {"to": to[router.route(batch["word"])] if both else np.full(len(batch), to[0])}

        routed = streams["words"].columns.with_columns(route)
        busy = Busy(keep.cost)
        partials = routed.columns.gather("to", partial(_counted, busy))
        merged = stateful.state_machine(partials, key="word", value="count", fold=add_partial, name="merge")
        return merged.columns.filter(partial(_paid, busy))


def _counted(busy: Busy, batch: Columns) -> dict[str, NDArray[np.int64]]:
    with busy.work(len(batch)):
        words, counts = np.unique(batch["word"], return_counts=True)
    return {"word": words, "count": counts}


def _paid(busy: Busy, batch: Columns) -> NDArray[np.bool_]:
    with busy.work(len(batch)):
        return np.ones(len(batch), bool)


def _word_of(worker: int) -> int:
    """A key that an exchange brings to this worker."""
    keys = np.arange(64, dtype=np.uint64)
    hashes = np.empty(64, np.uint64)
    mix_all(keys, hashes)
    return int(np.flatnonzero((hashes >> np.uint64(32)) * np.uint64(WORKERS) >> np.uint64(32) == worker)[0])


@megaphone.fold(state={"count": "i8"}, output={"word": "i8", "count": "i8"})
def add_partial(key, value, state):  # type: ignore[no-untyped-def]
    """The count of a word, from partial ones."""
    state.count += value
    return key, state.count


class Trades:
    """The self-join over a window, on stock exchange records."""

    inputs: tuple[str, ...] = ("trades",)
    window = 20  # epochs

    def build(self, streams: dict[str, ColumnStream], keep: Steered) -> Stream[Columns]:
        return self_join(streams["trades"], keep, self.window)

    def epochs(self, shape: Shape) -> Iterator[Tables]:
        rng = np.random.default_rng(shape.seed)
        each = shape.epochs * shape.records
        for made in stock(each, z=shape.z, intervals=shape.intervals, seed=shape.seed):
            if shape.shuffled:
                made = {**made, "stock": rng.integers(0, 1_036, each)}
            for rows in np.split(np.arange(each), shape.epochs):
                chosen = {name: made[name][rows] for name in ("stock", "player", "side")}
                yield {"trades": chosen}


class Revenue:
    """The continuous TPC-H Q5, for all regions at once: who buys and who supplies changes between intervals."""

    inputs: tuple[str, ...] = ("customer", "supplier", "orders", "lineitem")
    window = 20  # epochs

    def build(self, streams: dict[str, ColumnStream], keep: Steered) -> Stream[Columns]:
        every = np.ones(25, bool)
        return q5(streams, keep, every, start=0, length=DAYS, window=self.window)

    def epochs(self, shape: Shape) -> Iterator[Tables]:
        """An order has four lines on average: an epoch of so many records has a fifth as many orders."""
        count = shape.intervals * shape.epochs * shape.records // 5
        made = tpch(count / 1_500_000, z=shape.z, seed=shape.seed)
        lines = np.searchsorted(made.lineitem["orderkey"], np.arange(count + 1))
        rng = np.random.default_rng(shape.seed)
        first, epoch = True, 0
        for orders in np.split(np.arange(count), shape.intervals):
            buyers, suppliers = self._chances(shape, made, first, rng)
            for rows in np.array_split(orders, shape.epochs):
                sold = slice(lines[rows[0]], lines[rows[-1] + 1])
                placed = {name: column[rows] for name, column in made.orders.items()}
                placed["at"] = np.full(len(rows), epoch)
                lineitem = {name: column[sold] for name, column in made.lineitem.items()}
                lineitem["at"] = np.full(len(lineitem["suppkey"]), epoch)
                epoch += 1
                yield {
                    "customer": _all_or_none(made.customer, first),
                    "supplier": _all_or_none(made.supplier, first),
                    "orders": {**placed, "custkey": sample(buyers, len(rows), rng)},
                    "lineitem": {**lineitem, "suppkey": sample(suppliers, len(lineitem["suppkey"]), rng)},
                }
                first = False

    def _chances(self, shape: Shape, made: Q5Tables, first: bool, rng: np.random.Generator) -> list[Floats]:
        """How often each customer buys, and each supplier sells, in the next interval."""
        sizes = [len(made.customer["custkey"]), len(made.supplier["suppkey"])]
        if shape.shuffled:
            return [np.ones(size) for size in sizes]
        if first:
            self._now = [frequencies(size, shape.z, 1.0, rng) for size in sizes]
        else:
            self._now = [fluctuate(now, homes(now.size), WORKERS, shape.f, rng) for now in self._now]
        return self._now


def _all_or_none(columns: Numbers, whole: bool) -> Numbers:
    return columns if whole else {name: column[:0] for name, column in columns.items()}


PROGRAMS: dict[str, Program] = {
    "zipf": Words(),
    "social": Words(social=True),
    "social, split": SplitWords(social=True),
    "stock": Trades(),
    "tpch": Revenue(),
}
