"""Statistics: what every worker hears of records, bytes and processing time per bin is what was sent and what is there,
before and after migrations. On the virtual clock; processing time is counted by a clock of the test's own."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
import trio

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of
from megaphone.load.statistics import Load, Statistics, as_columns
from tests.megaphone.cases import Inputs, owner, random_updates

BINS, PEERS, TIMES = 8, 3, 8
KINDS = ["rows", "machine", "columns", "batches"]


@megaphone.fold(state={"count": "i8"}, compiled=False)
def count_columns(key, state):
    state.count += 1


def count_batches(time: int, batch: Any, state: Any, notificator: Any) -> None:
    if len(batch):
        np.add.at(state["count"], state.rows(batch["key"].view(np.uint64)), 1)


def count_rows(time: int, keys: list[Any], state: dict[Any, int], notificator: Any) -> Any:
    for key in keys:
        state[key] = state.get(key, 0) + 1
    return ()


def build(kind: str, configuration: Any, stream: Any, interval: float | None) -> Any:
    options: dict[str, Any] = {"bins": BINS, "interval": interval}
    if kind == "rows":
        return megaphone.unary(configuration, stream, key=lambda key: key, fold=count_rows, **options)
    if kind == "machine":
        pairs = stream.map(lambda key: (key, 1))
        return megaphone.state_machine(configuration, pairs, fold=lambda k, v, s: ((s or 0) + v, ()), **options)
    if kind == "columns":
        return megaphone.state_machine(configuration, stream, key="key", fold=count_columns, **options)
    return megaphone.unary(
        configuration, stream, key="key", fold=count_batches, state={"count": "i8"}, **options
    )


def keys_at(worker: int, time: int) -> list[int]:
    chance = random.Random(10 * time + worker)
    return [chance.randrange(40) for _ in range(chance.randint(1, 20))]


async def main(worker: dataflow.Worker, kind: str, updates: Inputs, interval: float | None) -> Any:
    """One time a second. The statistics and their history, and the sizes that the operator itself knows."""
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = build(kind, configuration, stream, interval)
        probe = counts.probe()
    statistics = counts.handle.statistics
    statistics.history = []
    for time in range(TIMES):
        control.send(updates.get((worker.index, time), []))
        keys = keys_at(worker.index, time)
        data.send({"key": np.array(keys)} if kind in ("columns", "batches") else keys)
        for handle in (control, data):
            handle.advance_to(time + 1)
        await probe.wait_passed(time)
        await trio.sleep(1)  # nothing is on its way any more
    return statistics, counts.handle.store.sizes(0, BINS)


def clockwork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stretch of work takes 1000 ns."""
    ticks = itertools.count(0, 1000)
    monkeypatch.setattr("dataflow.state.host.perf_counter_ns", lambda: next(ticks))


@pytest.mark.parametrize("kind", KINDS)
def test_every_worker_hears_what_was_applied_where_it_was(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clockwork(monkeypatch)
    for seed in range(3):
        updates = random_updates(random.Random(seed), TIMES, BINS, PEERS)
        results = simulate(main, kind, updates, 0.5, workers=PEERS, seed=seed)
        expected: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
        for time in range(TIMES):
            for worker in range(PEERS):
                for key in keys_at(worker, time):
                    number = bin_of(key, shift_of(BINS))
                    expected[time][owner(updates, BINS, PEERS, number, time), number] += 1
        for statistics, _ in results:
            history = statistics.history
            heard: Counter[tuple[int, int]] = Counter()
            for load in history:
                for number, records in zip(load.bins.tolist(), load.records.tolist(), strict=True):
                    heard[load.worker, number] += records
            total = sum(expected.values(), Counter())
            assert +heard <= total, "nothing is counted twice"
            told = sum(load.nanoseconds.sum() for load in history)
            assert 0 < told <= 1000 * PEERS * TIMES
            assert statistics.reports == len(history) > TIMES
        histories = [sorted((x.worker, x.interval, *x.records.tolist()) for x in s.history) for s, _ in results]
        assert histories[0] == histories[1] == histories[2], "all hear the same"


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_report_comes_in_parts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clockwork(monkeypatch)
    monkeypatch.setattr("megaphone.load.statistics._AT_ONCE", BINS // 4)
    for seed in range(3):
        updates = random_updates(random.Random(seed), TIMES, BINS, PEERS)
        results = simulate(main, kind, updates, 0.0, workers=PEERS, seed=seed)
        sent = Counter(bin_of(k, shift_of(BINS)) for w in range(PEERS) for t in range(TIMES) for k in keys_at(w, t))
        for statistics, _ in results:
            reports: dict[tuple[int, int], list[Any]] = defaultdict(list)
            for load in statistics.history:
                reports[load.worker, load.interval].append(load)
            assert statistics.reports == len(reports) > PEERS
            for heard in reports.values():
                parts = sorted(heard, key=lambda part: part.is_last)  # messages may overtake one another
                assert [part.is_last for part in parts] == [False, False, False, True]
                assert {part.until for part in parts} == {parts[3].until}
                assert parts[3].elsewhere == sum(int(part.records.sum()) for part in parts[:3])
                numbers = [number for part in parts for number in part.bins.tolist()]
                assert len(numbers) == len(set(numbers))
            counted: Counter[int] = Counter()
            for load in statistics.history:
                counted.update(dict(zip(load.bins.tolist(), load.records.tolist(), strict=True)))
            assert counted <= sent, "nothing is counted twice"
            assert counted.total() > sent.total() // 2


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_report_at_every_time_nothing_is_left_out(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clockwork(monkeypatch)
    updates = random_updates(random.Random(3), TIMES, BINS, PEERS)
    results = simulate(main, kind, updates, 0.0, workers=PEERS, seed=3)
    sent = Counter(bin_of(k, shift_of(BINS)) for w in range(PEERS) for t in range(TIMES) for k in keys_at(w, t))
    sizes = sum(sizes for _, sizes in results)
    for statistics, _ in results:
        table = as_columns(statistics.history)
        assert table.names == ("interval", "worker", "bin", "records", "bytes", "cost")
        assert len(table) == sum(len(load.bins) for load in statistics.history)
        counted: Counter[int] = Counter()
        for bin, records in zip(table["bin"].tolist(), table["records"].tolist(), strict=True):
            counted[bin] += records
        assert counted == sent
        assert statistics.bytes.tolist() == sizes.tolist(), "the last that was heard is what is there"
        last = Counter(bin_of(k, shift_of(BINS)) for w in range(PEERS) for k in keys_at(w, TIMES - 1))
        assert Counter(dict(enumerate(statistics.records.tolist()))) == last, "of the last interval"
        for load in statistics.history:  # time is shared out by records
            if load.records.sum():
                share = 1000 * load.records / load.records.sum()
                assert np.abs(load.nanoseconds - share).max() <= 1000
                assert (np.argsort(load.nanoseconds, kind="stable") == np.argsort(load.records, kind="stable")).all()


@megaphone.fold(state={"count": "i8"}, pending={"n": "i8"}, compiled=False)
def count_twice(key, time, state, later):
    state.count += 1
    later.at(time + 2, 1)


@megaphone.fold(state={"count": "i8"}, compiled=False)
def count_again(key, value, state):
    state.count += value


def put_off_rows(time: int, keys: list[Any], state: dict[Any, int], notificator: Any) -> Any:
    for key in keys:
        if isinstance(key, int):
            notificator.notify_at(time + 2, (key,))
    return ()


async def putting_off(worker: dataflow.Worker, in_rows: bool) -> Any:
    """Each record comes, and is due again; the keys 0 and 1 live apart from time 3 on."""
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        if in_rows:
            counts = megaphone.unary(
                configuration, stream, key=lambda key: key, fold=put_off_rows, bins=BINS, interval=0.0, by_key=True
            )  # fmt: skip
        else:
            counts = megaphone.state_machine(
                configuration, stream, key="key", fold=count_twice, due=count_again, bins=BINS, interval=0.0
            )  # fmt: skip
        probe = counts.probe()
    statistics = counts.handle.statistics
    statistics.history = []
    for time in range(TIMES):
        if time == 3 and worker.index == 0:
            control.send([megaphone.Pin(0, 1), megaphone.Pin(1, 2)])
        keys = keys_at(worker.index, time)
        data.send(keys if in_rows else {"key": np.array(keys)})
        for handle in (control, data):
            handle.advance_to(time + 1)
        await probe.wait_passed(time)
        await trio.sleep(1)
    return statistics.history


@pytest.mark.parametrize("in_rows", [True, False])
def test_what_was_put_off_counts_when_it_comes_and_keys_that_live_apart_by_themselves(in_rows: bool) -> None:
    history, *_ = simulate(putting_off, in_rows, workers=PEERS, seed=1)
    sent = Counter((time, key) for w in range(PEERS) for time in range(TIMES) for key in keys_at(w, time))
    apart = sum(count for (time, key), count in sent.items() if time >= 3 and key in (0, 1))
    assert sum(load.apart for load in history) == apart > 0
    assert sum(int(load.records.sum()) for load in history) == sum(sent.values()) - apart
    for load in history:
        covered = range(load.until - load.span + 1, load.until + 1)
        assert load.span >= 1 and set(covered) <= set(range(TIMES + 2))
        here = int(load.records.sum()) + load.apart
        assert here <= sum(count for (time, _), count in sent.items() if time in covered)
    assert {load.apart > 0 for load in history if load.worker == 0} == {False}, "they live on the others"


def test_intervals_are_kept_to_and_can_be_turned_off() -> None:
    (statistics, _), *_ = simulate(main, "rows", {}, 3.0, workers=PEERS, seed=1)
    lengths = [load.seconds for load in statistics.history]
    assert lengths and min(lengths) >= 3.0
    assert {load.interval for load in statistics.history} == {0, 1}
    (statistics, _), *_ = simulate(main, "rows", {}, None, workers=PEERS, seed=1)
    assert statistics.history == [] and statistics.reports == 0


def test_a_worker_that_has_given_a_bin_away_does_not_say_that_it_is_empty() -> None:
    """Worker 0 counted records of bin 3 and gave it away; its report may be heard after the new owner's."""
    statistics = Statistics(BINS)
    new = load_of(1, 5, {3: (7, 640)})
    old = load_of(0, 5, {3: (4, 0), 2: (1, 64)})
    for order in ([new, old], [old, new]):
        statistics = Statistics(BINS)
        for load in order:
            statistics.heard(load)
        assert statistics.bytes[3] == 640
        assert statistics.records[3] == 7
        assert statistics.bytes[2] == 64


def test_a_bin_that_is_emptied_says_so() -> None:
    """Every key is forgotten at once: the bin is still here, and small."""

    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            data, stream = scope.input()
            counts = megaphone.state_machine(
                configuration, stream, fold=lambda k, v, s: (v or None, ()), bins=1, interval=0.0
            )
            probe = counts.probe()
        seen = []
        for time, value in enumerate([1, 1, 0]):
            data.send([(key, value) for key in range(10 * (time + 1))])
            for handle in (control, data):
                handle.advance_to(time + 1)
            await probe.wait_passed(time)
            await trio.sleep(1)
            seen.append(int(counts.handle.statistics.bytes[0]))
        return seen

    (seen,) = simulate(main, workers=1)
    assert seen[0] < seen[1] and 0 < seen[2] < seen[0], seen


def load_of(worker: int, interval: int, bins: dict[int, tuple[int, int]]) -> Load:
    numbers = np.array(list(bins))
    records, sizes = (np.array([value[i] for value in bins.values()]) for i in (0, 1))
    return Load(worker, interval, 1.0, numbers, records, records * 10, sizes)


def test_an_empty_history_has_columns_too() -> None:
    assert len(as_columns([])) == 0
    assert as_columns([load_of(1, 2, {3: (7, 640)})]).rows() == [(2, 1, 3, 7, 640, 70)]
