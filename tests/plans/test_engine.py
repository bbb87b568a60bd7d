"""Joins on the engine: replans, moves of bins, several workers, any schedule: the results of all combinations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import megaphone
from dataflow.testing import simulate
from megaphone.plans import join_bin, travel
from megaphone.plans.bins import Asked
from megaphone.plans.migrating import METHODS, HybMig, Running
from megaphone.plans.query import Query
from tests.plans.engine_cases import EngineCase, check_engine_case, main, random_engine_case, run_engine_case
from tests.plans.test_migrating import max_for_span, no_keep, printed_chains

CASES = 400


@pytest.mark.parametrize("share", range(4))
def test_the_same_results_at_the_same_times(share: int) -> None:
    for seed in range(share, CASES, 4):
        run_engine_case(seed, METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_alone(method: str) -> None:
    for seed in range(5000, 5040):
        run_engine_case(seed, (method,))


def test_the_cases_have_something_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    begin, arrive, complete = Running.replan, join_bin.JoinBins.arrived, HybMig._complete

    def replan(self: Running, tree: Any, method: str, *rest: Any) -> None:
        seen[method] += tree != self.tree
        begin(self, tree, method, *rest)

    def arrived(self: Any, number: int, entries: Any) -> Any:
        bin = arrive(self, number, entries)
        seen["bins that moved"] += 1
        seen["bins that moved in mid-migration"] += bin.running.migration is not None
        seen["bins that moved with replans that wait"] += bool(bin.queue)
        return bin

    def completed(self: HybMig, *rest: Any) -> None:
        seen["states completed in the background"] += 1
        complete(self, *rest)

    monkeypatch.setattr(Running, "replan", replan)
    monkeypatch.setattr(join_bin.JoinBins, "arrived", arrived)
    monkeypatch.setattr(HybMig, "_complete", completed)
    for seed in range(CASES // 4):
        case = random_engine_case(seed, METHODS)
        for out, *_ in simulate(main, case, workers=case.peers, seed=seed):
            seen["results"] += len(out)
    assert len(seen) == 8 and min(seen.values()) > 10, seen


def minimal(chance: int) -> EngineCase:
    """The least case of the paper's error 5, on the engine: c, d | b, S_CD is completed, a."""
    query = Query(("a", "b", "c", "d"), 100, on=0)
    epochs: Any = [{name: [] for name in query.streams} for _ in range(12)]
    epochs[0]["c"], epochs[1]["d"] = [(0, 0, "c")], [(0, 0, "d")]
    epochs[3]["b"], epochs[9]["a"] = [(0, 0, "b")], [(0, 0, "a")]
    return EngineCase(query, "((a b) c) d", 1, 2, 1, [epochs], {(0, 2): [megaphone.Replan("a (b (c d))")]}, chance % 3)


def test_the_papers_own_error() -> None:
    """Whenever the background completes S_CD and S_BCD."""
    for seed in range(20):
        check_engine_case(minimal(seed), seed)


# ------------------------------------------------------------------------------------------------- broken on purpose


def early_cut_off(patch: pytest.MonkeyPatch) -> None:
    """A state that was completed counts as if it had been at the start of the migration."""
    complete = HybMig._complete
    patch.setattr(HybMig, "_complete", lambda self, task, now: complete(self, task, self.time))


def chains_stay_behind(patch: pytest.MonkeyPatch) -> None:
    """A bin that moves in mid-migration owes nothing where it arrives."""
    patch.setattr(travel, "_task", lambda query, task: [travel._names(query, task.cut.streams), [], []])


def states_stay_behind(patch: pytest.MonkeyPatch) -> None:
    """A bin that moves in mid-migration travels without what its next plan has."""
    composites = travel._composites
    patch.setattr(travel, "_composites", lambda side, *rest, **named: () if side else composites(side, *rest, **named))


def a_time_late(patch: pytest.MonkeyPatch) -> None:
    """A migration counts what came at its start as old."""
    replan = Running.replan
    patch.setattr(
        Running, "replan", lambda self, tree, method, time, options: replan(self, tree, method, time + 1, options)
    )


def no_waiting(patch: pytest.MonkeyPatch) -> None:
    """A second replan does not wait for the first."""

    def replan(self: Any, asked: Asked, time: int) -> None:
        self.running.migration = None
        really(self, asked, time)

    really = join_bin.JoinBin._replan
    patch.setattr(join_bin.JoinBin, "_replan", replan)
    patch.setattr(join_bin.JoinBin, "_migrates", False)


MUTANTS = [
    max_for_span,
    no_keep,
    printed_chains,
    early_cut_off,
    chains_stay_behind,
    states_stay_behind,
    a_time_late,
    no_waiting,
]


@pytest.mark.parametrize("break_it", MUTANTS)
def test_a_broken_rule_is_found_out(break_it: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    assert any(fails(seed, True) for seed in range(10)) or any(fails(seed) for seed in range(CASES))


def fails(seed: int, least: bool = False) -> bool:
    try:
        check_engine_case(minimal(seed) if least else random_engine_case(seed, METHODS), seed)
    except (AssertionError, KeyError, IndexError):
        return True
    return False
