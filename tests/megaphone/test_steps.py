"""Steps as the controller takes them: orders, budgets, pieces, gaps, progress, and cancelling between steps."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.columns import Columns
from dataflow.state.memory.allocation import RECORDS, ROOM, USED
from dataflow.state.pieces import HEAD, pack, unpack
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.testing import simulate
from megaphone import Move, all_at_once, batched, fluid, matched
from megaphone.keys.hashing import bin_of, shift_of
from megaphone.migration.strategies import USUAL, Strategy
from megaphone.router.routing import Router
from tests.megaphone.column_cases import OUTPUT, PENDING, STATE, check, random_case, run_case
from tests.megaphone.column_cases import main as case_main
from tests.patched import Patched

BINS = 8


# ----------------------------------------------------------------------------------------------------- plans, as values


@pytest.mark.parametrize("make", [all_at_once, fluid, lambda **o: batched(3, **o), matched])
def test_the_biggest_or_the_hottest_go_first(make: Any) -> None:
    for seed in range(30):
        chance = random.Random(seed)
        sizes, records = ([chance.randrange(5) for _ in range(20)] for _ in range(2))
        current, target = ([chance.randrange(3) for _ in range(20)] for _ in range(2))
        plain = [move for step in make().steps(current, target) for move in step]
        for order, weights in (("biggest", sizes), ("hottest", records)):
            steps = make(order=order).steps(current, target, sizes, records)
            moves = [move for step in steps for move in step]
            assert sorted(moves, key=lambda m: m.bin) == sorted(plain, key=lambda m: m.bin)
            if make is not matched:  # which puts together what fits together
                expected = sorted(sorted(moves, key=lambda m: m.bin), key=lambda m: -weights[m.bin])
                assert moves == expected, "descending, and equal ones by number"
            assert all(step == sorted(step, key=lambda m: -weights[m.bin]) for step in steps)


def test_a_split_step_keeps_to_its_budget_its_order_and_its_moves() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        sizes = [chance.choice([0, 5, 50, 500]) for _ in range(12)]
        step = [Move(b, 1) for b in chance.sample(range(12), chance.randint(1, 12))]
        strategy = batched(12, budget=chance.choice([1, 60, 400, 10_000]))
        parts, rest = [], step
        while rest:
            part, rest = strategy.split(rest, sizes)
            assert part, "it goes on"
            total = sum(sizes[move.bin] for move in part)
            if total > strategy.budget:  # type: ignore[operator]
                big = [move for move in part if sizes[move.bin]]
                assert len(big) == 1, "a bin above the budget goes alone"
            if rest:
                assert total + sizes[rest[0].bin] > strategy.budget, "no sooner than it must"  # type: ignore[operator]
            parts += part
        assert parts == step
    assert all_at_once().split([Move(0, 1), Move(1, 1)], [1 << 40] * 2) == ([Move(0, 1), Move(1, 1)], [])


def test_without_a_budget_steps_are_split_at_the_usual_size_where_sizes_are_known() -> None:
    step = [Move(bin, 1) for bin in range(4)]
    half = USUAL // 2
    for make in (lambda: batched(4), matched, fluid):
        strategy = make()
        assert strategy.budget is None
        assert strategy.split(step, [half] * 4) == (step[:2], step[2:])
        assert strategy.split(step, [half, half, 1, half]) == (step[:2], step[2:]), "one byte too many"
        assert strategy.split(step, [USUAL + 1, 1, 1, 1]) == (step[:1], step[1:])
        assert strategy.split(step, [10] * 4) == (step, [])
        assert strategy.split(step, None) == (step, []), "nobody knows, and nobody asked"
    assert batched(4, budget=1 << 40).split(step, [half] * 4) == (step, [])


def test_what_makes_no_sense_is_refused() -> None:
    for make, complaint in [
        (lambda: fluid(order="smallest"), "'biggest' or 'hottest'"),  # type: ignore[arg-type]
        (lambda: matched(budget=0), "a number of bytes"),
        (lambda: batched(2, gap=-1), "negative"),
        (lambda: batched(0), "at least one bin"),
        (lambda: batched(1.5), "a number of bins, not 1.5"),  # type: ignore[arg-type]
        (lambda: fluid(budget="1 MB"), "a number of bytes, not '1 MB'"),  # type: ignore[arg-type]
        (lambda: fluid(gap=0.5), "a number of times, not 0.5"),  # type: ignore[arg-type]
    ]:
        with pytest.raises((ValueError, TypeError), match=complaint):
            make()
    assert fluid(budget=9).split([Move(0, 1), Move(1, 1)], None) == ([Move(0, 1)], [Move(1, 1)]), "sizes are not known"
    with pytest.raises(TypeError):
        all_at_once(budget=5)  # type: ignore[call-arg]


# ------------------------------------------------------------------------------------------------------------- pieces


@megaphone.fold(state=STATE, output=OUTPUT, pending=PENDING, compiled=False)
def add(time, key, value, state, emit, later):
    state.total += value
    later.at(time + value, key)


@megaphone.fold(state=STATE, output=OUTPUT, pending=PENDING, compiled=False)
def come_back(time, key, value, state, emit):
    emit.row(key, value)


def filled(keys: range) -> FoldStore:
    keyed = FoldStore("test", [Side("key", "value", add)], come_back, BINS, None)
    if len(keys):
        keyed.run(0, [[Columns({"key": np.array(keys), "value": np.array(keys) % 9 + 1})]])
    return keyed


@pytest.mark.parametrize("limit", [1, 2, 7, 64, 1 << 17])
def test_a_bin_in_pieces_arrives_as_it_left(limit: int) -> None:
    """Pieces come in any order, as messages do; each is within the limit."""
    here, there, whole = filled(range(90)), filled(range(0)), filled(range(90))
    sizes = here.sizes(0, BINS)
    lanes = [[pack(piece) for piece in here.take_bin(bin, limit)] for bin in range(BINS)]
    for lane, size in zip(lanes, sizes.tolist(), strict=True):
        pieces = [piece for words in lane for piece in unpack(words)]
        assert sum(len(piece.words) for piece in pieces) * 8 == size, "what statistics call its size"
        assert all(1 <= len(piece.words) <= limit for piece in pieces)
    assert not here.table.read().rows() and here.least_pending is None, "nothing is left behind"
    assert here.pending is not None and not len(here.pending)
    chance = random.Random(limit)
    messages = [words for lane in lanes for words in lane]
    for words in chance.sample(messages, len(messages)):
        put(there, words)
    assert sorted(there.table.read().rows()) == sorted(whole.table.read().rows())
    assert there.least_pending == whole.least_pending == 1
    for time in range(1, 12):
        due = [sorted(row for out in keyed.run(time, [[]]) for row in out.rows()) for keyed in (there, whole)]
        assert due[0] == due[1] and bool(due[0]) == (time < 10)
    assert there.table.meta[:, RECORDS].sum() == 90, "records are counted where they are applied: those that were due"
    columns = slice(ROOM, USED + 1)
    assert (there.table.meta[:, columns] == whole.table.meta[:, columns]).all()
    assert not any(part.segments.missing for part in there.parts)


def test_a_bin_that_has_seen_more_than_two_billion_records_can_move() -> None:
    """Tables count records in 32 bits, which come round; the count stays behind."""
    here, there = filled(range(90)), filled(range(0))
    before = here.table.read().rows()
    here.records[:] = -(1 << 31)
    for bin in range(BINS):
        for piece in here.take_bin(bin, 64):
            put(there, pack(piece))
    assert sorted(there.table.read().rows()) == sorted(before)
    assert not there.records.any()


def test_the_properties_hold_where_every_bin_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random cases under random schedules, and on processes: with post-dated records, which are parts of their own."""
    small = {"megaphone.router.routing.PIECE": 3, "megaphone.router.routing.PIECES": 48}
    for name, value in small.items():
        monkeypatch.setattr(name, value)
    for seed in range(40):
        run_case(seed)
    for seed in [seed for seed in range(100) if random_case(seed).peers == 2][:3]:
        case = random_case(seed)
        check(case, dataflow.execute(Patched(case_main, small), case, workers=2))


def test_a_message_of_state_that_cannot_be_right_is_refused() -> None:
    message = pack(next(filled(range(90)).take_bin(3, 1 << 17)))
    there = filled(range(0))
    for broken, complaint in [
        (message[:3], "in the middle of a head"),
        (message[:-1], "says that it has .* words, and .* follow"),
        (changed(message, 0, BINS), "of which there is none"),
        (changed(message, 1, 9), "of which there is none"),
        (changed(message, 3, 1000), "no segment has room for 1000 rows"),
        (changed(message, 2, 1 << 40), "does not fit"),
        (changed(message, 2, 1 << 63), "a number in its head"),
        (changed(message, 6, 2), "a number in its head"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            put(there, broken)
    assert not there.table.read().rows(), "nothing half-installed"
    put(there, message)
    with pytest.raises(AssertionError, match="here already"):
        put(there, message)
    assert len(message) > HEAD


def put(store: FoldStore, message: Any) -> None:
    for piece in unpack(message):
        store.put(piece)


def changed(message: Any, at: int, value: int) -> Any:
    copy = message.copy()
    copy[at] = value
    return copy


# ---------------------------------------------------------------------------------------------------------- controller


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"}, compiled=False)
def count(key, state):
    state.count += 1
    return key, state.count


def keys_at(time: int, worker: int) -> list[int]:
    """Many keys in the beginning, so that bins have sizes, which differ; then keys of one bin only, which is hot."""
    return list(range(worker, 400, 2)) if time == 0 else [1 + (time + worker) % 2]


async def main(worker: dataflow.Worker, strategy: Strategy, times: int, cancel_at: int | None) -> Any:
    """Everything to worker 1, from time 4 on. What came out, and what the controller said at each time."""
    out: list[Any] = []
    told: list[Any] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.state_machine(configuration, stream, key="key", fold=count, bins=BINS, interval=0.0)
        probe = counts.inspect_batch(lambda t, batch: out.extend(batch.rows())).probe()
    controller = megaphone.Controller(control, counts)
    for time in range(times):
        data.send({"key": np.array(keys_at(time, worker.index))})
        data.advance_to(time + 1)
        if time == 4 and worker.index == 0:
            controller.migrate(to=np.ones(BINS, np.uint32), strategy=strategy)
        if time == cancel_at:
            controller.cancel()
        controller.advance_to(time + 1)
        sizes = controller.statistics.bytes.copy()
        told.append((controller.progress, controller.busy, controller.configuration, sizes))
        await probe.wait_passed(time)
    return out, told


def run(strategy: Strategy, times: int = 40, cancel_at: int | None = None, seed: int = 0) -> list[Any]:
    """Runs, checks the results, and that all workers agree; what worker 0's controller said."""
    results = simulate(main, strategy, times, cancel_at, workers=2, seed=seed)
    totals = Counter(key for time in range(times) for worker in range(2) for key in keys_at(time, worker))
    rows = Counter(row for out, _ in results for row in out)
    assert rows == Counter((key, n) for key, total in totals.items() for n in range(1, total + 1))
    (_, first), (_, second) = results
    for (_, busy, configuration, _), (progress, other_busy, other, _) in zip(first, second, strict=True):
        assert not other_busy and progress.steps == 0, "one issues it"
        if not busy:
            assert configuration == other, "all agree on where bins are"
    return first


def configurations(told: list[Any]) -> list[tuple[int, ...]]:
    """Those that were in force, one after the other."""
    found: list[tuple[int, ...]] = []
    for _, _, configuration, _ in told:
        if not found or configuration != found[-1]:
            found.append(configuration)
    return found


def sizes_of(told: list[Any]) -> Any:
    return told[4][3]


@pytest.mark.parametrize("seed", range(3))
def test_a_budget_splits_steps_and_progress_counts_them(seed: int) -> None:
    plain = run(all_at_once(), seed=seed)
    sizes = sizes_of(plain)
    assert (sizes > 0).all(), "every bin has told its size"
    moving = [b for b in range(BINS) if b % 2 == 0]
    budget = int(sizes[moving].max() + sizes[moving].min())  # two of some, one of others
    told = run(batched(BINS, budget=budget), seed=seed)
    states = configurations(told)
    for before, after in pairwise(states):
        moved = [b for b in range(BINS) if before[b] != after[b]]
        assert sizes[moved].sum() <= budget or len(moved) == 1
    steps = len(states) - 1
    assert 1 < steps < len(moving)
    final = told[-1][0]
    assert (final.steps_done, final.steps, final.bins_moved, final.bins) == (steps, steps, 4, 4)
    assert told[4][0].steps == 2, "a step that is split is one more"
    done = [progress.bins_moved for progress, *_ in told]
    assert done == sorted(done) and all(p.bins_moved <= p.bins and p.steps_done <= p.steps for p, *_ in told)
    assert states[-1] == (1,) * BINS


def test_a_bin_above_the_budget_goes_alone_and_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of eight words, and F lets others have their turn after each sixteen: results are the same."""
    sent: list[int] = []
    stops = 0
    send = Router._send_pieces

    def note(self: Any, capability: Any) -> bool:
        nonlocal stops
        give = self._state.give

        def noted(capability: Any, parts: Any) -> None:
            sent.extend(len(piece.words) for part in parts.parts if len(part) for piece in unpack(part["words"]))
            give(capability, parts)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._state, "give", noted)
            done = send(self, capability)
        stops += not done
        return done

    monkeypatch.setattr(Router, "_send_pieces", note)
    monkeypatch.setattr("megaphone.router.routing.PIECE", 8)
    monkeypatch.setattr("megaphone.router.routing.PIECES", 128)
    for seed in range(3):
        told = run(batched(BINS, budget=1), seed=seed)
        states = configurations(told)
        assert len(states) == 5, "each of four bins alone"
    assert max(sent) == 8 and len(sent) > 4 * 3 * 10, "in pieces"
    assert stops > 10, "over several steps of F"


def turns_between(strategy: Strategy, seed: int = 0) -> set[int]:
    """How many times pass from the end of one step to the end of the next."""
    told = run(strategy, times=60, seed=seed)
    finished = [i for i in range(1, 60) if told[i][0].steps_done > told[i - 1][0].steps_done]
    assert told[-1][0].steps_done == 4
    return {b - a for a, b in pairwise(finished)}


@pytest.mark.parametrize("seed", range(5))
def test_a_small_bin_leaves_at_each_time(seed: int) -> None:
    assert turns_between(fluid(), seed) == {1}, "the next begins before the one before is done"


def test_bins_that_are_not_small_wait_for_each_other() -> None:
    assert turns_between(replace(fluid(), overlap=1)) == {2}
    assert turns_between(fluid(budget=1)) == {2}, "no more in flight than the budget allows"


@pytest.mark.parametrize("gap", [1, 3])
def test_a_gap_leaves_so_many_times_between_steps(gap: int) -> None:
    told = run(fluid(gap=gap), times=60)
    finished = [i for i in range(1, 60) if told[i][0].steps_done > told[i - 1][0].steps_done]
    assert len(finished) == 4
    assert {b - a for a, b in pairwise(finished)} == {gap + 2}, "a step takes two of these turns by itself"


@pytest.mark.parametrize("cancel_at", range(4, 14, 3))
def test_cancelling_between_steps_keeps_the_last_configuration_true(cancel_at: int) -> None:
    told = run(fluid(gap=1), cancel_at=cancel_at)
    progress, busy, configuration, _ = told[-1]
    moved = sum(worker == 1 for worker in configuration) - BINS // 2
    assert not busy
    assert (progress.steps, progress.bins) == (progress.steps_done, progress.bins_moved) == (moved, moved)
    assert moved < BINS // 2, "it was cancelled"
    assert configurations(told)[-1] == configuration
    whole = configurations(run(fluid(gap=1)))
    assert configurations(told) == whole[: moved + 1], "the steps that were taken, and no others"


def test_the_controller_takes_sizes_and_heat_from_the_statistics() -> None:
    """Bin by bin, in the order of what had been told when the migration began."""
    sizes = sizes_of(run(fluid()))
    told = run(fluid(order="biggest"), times=30)
    moved = [next(b for b in range(BINS) if x[b] != y[b]) for x, y in pairwise(configurations(told))]
    assert moved == sorted(range(0, BINS, 2), key=lambda b: -sizes[b]) != [0, 2, 4, 6]
    told = run(fluid(order="hottest"), times=30)
    first = next(b for b in range(BINS) if configurations(told)[1][b] != configurations(told)[0][b])
    assert {first} == {bin_of(key, shift_of(BINS)) for key in (1, 2)} != {0}


def test_after_a_cancelled_migration_another_begins_from_where_bins_are() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            data, stream = scope.input("data")
            counts = megaphone.state_machine(configuration, stream, key="key", fold=count, bins=BINS)
            probe = counts.probe()
        controller = megaphone.Controller(control, counts)
        seen = []
        for time in range(40):
            data.advance_to(time + 1)
            if worker.index == 0:
                if time == 1:
                    controller.migrate(to=[1] * BINS, strategy=fluid())
                if time == 3:
                    controller.cancel()
                if time > 3 and not controller.busy and len(seen) == 0:
                    seen.append(controller.configuration)
                    controller.migrate(to=[0] * BINS, strategy=fluid())
            controller.advance_to(time + 1)
            await probe.wait_passed(time)
        return seen, controller.configuration, controller.progress

    (seen, configuration, progress), (_, other, _) = simulate(main, workers=2, seed=5)
    assert configuration == other == (0,) * BINS
    assert progress.bins == sum(seen[0]) == progress.bins_moved
