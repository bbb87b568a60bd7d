"""``python -m planners order LOG``: which plan a join should have, and what the closed loop would do about it.

The log is JSON: the plan that runs, the window, and for each interval what is known of the streams then. Nothing is
changed: where the loop would replan, the next interval is judged with the new plan.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from planners import decoding
from planners.errors import BadRequest

if TYPE_CHECKING:
    from planners.plans import JoinStatistics, ReplanDecision
    from planners.plans.decision import Comparison

ADVICE = (
    'write {"plan": "(a b) c", "window": 60, "intervals": [{"rates": {"a": 1.0, ...}, "same_key": {"a b": 0.05, ...}, '
    '"holds": {...}, "together": {"a b c": ...}}, ...]}; all but rates can be left out'
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    parser = commands.add_parser("order", help="the cheapest join order, and what the closed loop would do about it")
    parser.add_argument("log", metavar="LOG", help="the plan that runs, and statistics by interval (.json)")
    parser.add_argument("--dry-run", action="store_true", help="say what it would do: all that a log allows")
    parser.add_argument("--method", default="hybmig", help="how the plan would be changed (hybmig)")
    parser.add_argument("--capacity", type=float, help="steps per unit of time that the machine can do")
    parser.add_argument("--hysteresis", type=float, default=0.2, help="share that another plan must save (0.2)")
    parser.add_argument("--patience", type=int, default=2, help="for how many intervals it must (2)")
    parser.add_argument("--horizon", type=float, default=5.0, help="windows in which the migration must pay (5)")


def order(options: argparse.Namespace) -> int:
    """Prints a decision for each interval, and the predicted costs of each method where there is another plan."""
    from planners.plans import ReplanLoop

    if not options.dry_run:
        raise BadRequest(
            "a log cannot be replanned: say --dry-run, or drive a controller with planners.plans.PlanDriver"
        )
    plan, window, intervals = read_log(options.log)
    loop = ReplanLoop(
        options.method, options.hysteresis, options.patience, options.horizon, least=0, capacity=options.capacity
    )
    for number, statistics in enumerate(intervals):
        decision = loop.decide(plan, statistics, now=(number + 1) * window)
        print("\n".join(_lines(decision)))
        plan = decision.plan or plan
    return 0


def _lines(decision: ReplanDecision) -> Iterator[str]:
    yield str(decision)
    found = decision.found
    if found is not None and found.best.order != found.order:
        yield from _table(found)


def _table(found: Comparison) -> Iterator[str]:
    yield f"  steps per unit of time: {found.steps:,.0f} now, {found.best.steps:,.0f} with {found.best}"
    yield f"  tuples in states: {found.tuples:,.0f} now, {found.best.tuples:,.0f} then"
    for cost in found.costs.values():
        times = ["" if time is None else f"{time:,.1f}" for time in (cost.duration, cost.silence)]
        if cost.duration == math.inf:
            yield f"  {cost.method:<14} never ends: the machine cannot do both plans' steps"
            continue
        lasts = f", lasts {times[0]}, silent for {times[1]}" if times[0] else ""
        yield f"  {cost.method:<14} {cost.steps:>14,.0f} steps{lasts}"


def read_log(path: str) -> tuple[str, float, list[JoinStatistics]]:
    """The plan that runs, the window, and statistics by interval."""
    try:
        log = decoding.read_object(path, ADVICE)
    except FileNotFoundError:
        raise BadRequest(f"there is no file {path}") from None
    with decoding.naming(path, ADVICE):
        plan, window = decoding.string(log, "plan"), float(decoding.number(log, "window"))
        intervals = decoding.member(log, "intervals")
        if not isinstance(intervals, list) or not intervals or not all(isinstance(each, dict) for each in intervals):
            raise BadRequest("'intervals' is a list of objects, one at least")
        return plan, window, [_statistics(window, each) for each in intervals]


def _statistics(window: float, interval: Mapping[str, object]) -> JoinStatistics:
    from planners.plans import JoinStatistics

    rates = _numbers(interval, "rates")
    same_key, holds, together = (_shares(interval, what) for what in ("same_key", "holds", "together"))
    return JoinStatistics(tuple(rates), window, rates, same_key, holds, together)


def _shares(interval: Mapping[str, object], name: str) -> dict[frozenset[str], float]:
    values = _numbers(interval, name) if name in interval else {}
    return {frozenset(streams.split()): share for streams, share in values.items()}


def _numbers(found: Mapping[str, object], name: str) -> dict[str, float]:
    values = decoding.mapping(found, name)
    return {each: float(decoding.number(values, each)) for each in values}
