"""Runs a case, and judges it."""

from __future__ import annotations

from collections import Counter

from dataflow.testing import Starving, simulate
from tests.members.checking import Checker
from tests.members.meaning import meaning
from tests.members.programs import Case


def run_case(seed: int, often: float = 0.05, simple: bool = False) -> Case:
    """Simulates a case; AssertionError if it comes out wrong, or a frontier runs ahead."""
    case = Case(seed)
    if simple:  # what is exchanged as it comes, by mains that do not wait
        case.stages, case.sent, case.out, case.paced = [("count",)], [[]], [[]], False
    checker = Checker(seed, often)
    scheduler = Starving() if seed % 3 == 0 else None
    debug = seed % 2 == 0
    simulate(case.main, workers=case.workers, seed=seed, scheduler=scheduler, debug=debug, watch=checker, turns=100_000)
    for stages, sent, out in zip(case.stages, case.sent, case.out, strict=True):
        expected = meaning(stages, sent)
        got = Counter(out)
        assert got == expected, f"{stages}: too many {got - expected}, missing {expected - got}"
    return case
