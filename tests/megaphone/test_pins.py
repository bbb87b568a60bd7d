"""Single keys that live apart from their bins: the three properties, with pins and moves of bins together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.state.pieces import unpack
from dataflow.testing import simulate
from megaphone.control.updates import parse_lines
from megaphone.keys.keyspace import WordKeys, WordOverrides
from megaphone.router.routing import Router
from tests.megaphone import test_joins
from tests.megaphone.column_cases import check, main
from tests.megaphone.pin_cases import pin_changes, random_case, random_join, run_case, run_join

CASES = 160
OVERRIDES_AT = "megaphone.control.configuration.Configurations.overrides_at"
JOINS = 80


@pytest.mark.parametrize("share", range(4))
def test_correctness_migration_and_completion(share: int) -> None:
    for seed in range(share, CASES, 4):
        run_case(seed)


def test_joins_against_nested_loops() -> None:
    for seed in range(JOINS):
        run_join(seed)


def test_keys_that_need_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("megaphone.router.routing.PIECE", 3)
    for seed in range(40):
        run_case(seed)
        run_join(seed)


def test_compiled_folds_give_the_same() -> None:
    for seed in [seed for seed in range(CASES) if random_case(seed).kind != "batches"][:6]:
        case = replace(random_case(seed), compiled=True)
        check(case, simulate(main, case, workers=case.peers, seed=seed))


@pytest.mark.parametrize("workers", [2, 4])
def test_on_real_processes(workers: int) -> None:
    for seed in [seed for seed in range(CASES) if random_case(seed).peers == workers][:3]:
        case = random_case(seed)
        check(case, dataflow.execute(main, case, workers=workers))


def test_the_cases_have_something_in_them() -> None:
    """Keys that are pinned, moved while pinned, and unpinned when their bin moves at the same time."""
    changes = {"begins": 0, "moves": 0, "ends": 0, "with its bin": 0}
    for seed in range(CASES):
        case = random_case(seed)
        for key in {key for batch in case.left.values() for key, _ in batch}:
            for time, change in pin_changes(case.updates, key, case.times):
                changes[change] += 1
                moves = [u for (_, at), b in case.updates.items() if at == time for u in b]
                changes["with its bin"] += any(isinstance(u, megaphone.Assign) for u in moves)
    assert min(changes.values()) > 30, changes


def bins_first(self: Any, migration: Any) -> Any:
    yield from BEFORE(self, replace(migration, keys=None))
    if migration.keys is not None:
        yield from self._departing_keys(migration.keys)


def install_at_once(self: Any) -> None:
    for message, batch in self._arrivals:
        for piece in unpack(batch["words"]):
            self._store.put(piece)
        self._host.hold_from(message)


BEFORE = Router._departing


@pytest.mark.parametrize(
    ("target", "how", "run"),
    [
        (OVERRIDES_AT, lambda self, time: None, run_case),
        (OVERRIDES_AT, lambda self, time: self.latest_overrides, run_case),
        ("dataflow.state.stores.with_pending.take_pending", lambda *_: np.empty(0, np.uint64), run_case),
        ("megaphone.router.routing.Router._departing", bins_first, run_case),
        ("megaphone.host.s.S._install_arrivals", install_at_once, run_case),
        ("dataflow.state.stores.column_store.ColumnStore._put_key", lambda *_: None, run_case),
        ("dataflow.state.stores.join_store.put_chain", lambda *_: None, run_join),
    ],
    ids=[
        "records do not follow",
        "routes by the latest pins",
        "leaves pending records behind",
        "takes bins before keys",
        "does not wait for the bin",
        "loses what arrives",
        "loses rows of a join",
    ],
)
def test_a_broken_rule_is_found_out(
    target: str, how: Any, run: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, how)

    def fails(seed: int) -> bool:
        try:
            run(seed)
        except (AssertionError, ExceptionGroup, dataflow.DataflowError, KeyError, ValueError):
            return True
        return False

    assert any(fails(seed) for seed in range(CASES))


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (megaphone.Pin(3, 2), "no worker 2: there are 2"),
        (megaphone.Pin(3, -1), r"send Unpin\(3\)"),
        (megaphone.Pin("three", 0), "'three' is not a key"),  # type: ignore[arg-type]
        (megaphone.Pin(1 << 64, 0), "more than 64 bits"),
        (megaphone.Unpin(0.5), "0.5 is not a key"),  # type: ignore[arg-type]
        (megaphone.Pin(16, 0), "16 cannot be pinned: keys are from 0 to 15"),
        (megaphone.Unpin(-1), "-1 cannot be pinned"),
        (megaphone.Pins(np.array([1, 2]), np.array([0])), "2 keys to 1 workers"),
        (megaphone.Pins(np.array([1.5]), np.array([0])), "1.5 is not a key"),
    ],
    ids=str,
)
def test_bad_pins_are_refused_where_they_are_sent(bad: Any, complaint: str) -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            _, stream = scope.input("data")
            fold = megaphone.fold(tally, state={"n": "i8"}, compiled=False)
            counts = megaphone.state_machine(
                configuration, stream, key="key", fold=fold, bins=4, keys=megaphone.dense(16)
            )
        with pytest.raises(megaphone.ControlError, match=complaint):
            control.send([megaphone.Pin(1, 0), bad])
        return counts.handle.pinned

    assert simulate(main, workers=2) == [{}, {}]


def tally(key, state):
    state.n += 1


def test_lines_of_control_may_name_keys() -> None:
    lines = ['{"time": 5, "key": 70, "worker": 1}', '{"time": 9, "key": 70, "worker": null}']
    assert list(parse_lines(lines)) == [(5, megaphone.Pin(70, 1)), (9, megaphone.Unpin(70))]


def test_keys_of_all_64_bits_mean_what_columns_mean() -> None:
    keys = [-1, (1 << 64) - 1, 1 << 63, -(1 << 63), 5]
    words = WordKeys("count", lambda words: words).check(keys).tolist()
    assert words == [(1 << 64) - 1, (1 << 64) - 1, 1 << 63, 1 << 63, 5]


def test_a_large_table_finds_each_of_its_keys_and_no_other() -> None:
    rng = np.random.default_rng(3)
    keys = np.unique(rng.integers(0, 1 << 63, 5000).astype(np.uint64))
    workers = rng.integers(0, 7, len(keys))
    table = WordOverrides(keys[::-1].copy(), workers[::-1].copy())
    assert (table.workers_of(keys) == workers).all()
    assert (table.workers_of(keys + np.uint64(1))[~np.isin(keys + np.uint64(1), keys)] == -1).all()


def test_a_join_on_real_processes() -> None:
    for seed in [seed for seed in range(JOINS) if random_join(seed).peers == 2][:3]:
        case = random_join(seed)
        test_joins.check(case, dataflow.execute(join_main, case, workers=2))


async def join_main(worker: dataflow.Worker, case: Any) -> Any:
    out, kinds, _ = await test_joins.main(worker, case, False)
    return out, kinds, None
