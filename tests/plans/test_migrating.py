"""Every method, with any instants of background work, gives what a program gives that looks at all combinations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from megaphone.plans import migrating, tree_step
from megaphone.plans.chains import Chain
from megaphone.plans.composites import earliest, latest
from megaphone.plans.migrating import METHODS, HybMig, Running
from megaphone.plans.query import Joint, Query
from megaphone.plans.trees import BadPlan, decompose, joins, lowest, parse
from tests.plans.cases import Case, Replanned, check, dense_case, oracle, random_case, run, run_case

CASES = 600


@pytest.mark.parametrize("share", range(4))
def test_the_same_results_at_the_same_times(share: int) -> None:
    for seed in range(share, CASES, 4):
        run_case(seed)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_alone(method: str) -> None:
    for seed in range(1000, 1060):
        run_case(seed, (method,))


def test_slow_work_in_the_background() -> None:
    for seed in range(CASES):
        check(dense_case(seed), seed)


def test_the_cases_have_something_in_them() -> None:
    seen: Counter[str] = Counter()
    for seed in range(CASES):
        case = random_case(seed)
        for _, results, running in run(case):
            seen["results"] += sum(results.values())
            if isinstance(running.migration, HybMig):
                tasks = running.migration.tasks
                seen["old plan at work"] += running.migration.owes
                seen["shared parts"] += any(task.cut.is_shared for task in tasks)
                seen["several tasks"] += sum(not task.cut.is_shared for task in tasks) > 1
                seen["longer chains"] += any(len(c.conditions) > 1 for task in tasks for c in task.chains)
        seen["replans"] += len(case.replans)
    assert min(seen.values()) > 20 and len(seen) == 6, seen


def minimal() -> Case:
    """The least case of the paper's error 5: c and d are old, S_CD is completed, b came before that, a after."""
    query = Query(("a", "b", "c", "d"), 100, on=0)
    epochs: Any = [{name: [] for name in query.streams} for _ in range(8)]
    epochs[0]["c"], epochs[1]["d"] = [(0, "c")], [(0, "d")]
    epochs[3]["b"], epochs[6]["a"] = [(0, "b")], [(0, "a")]
    tree = query.plan("((a b) c) d")
    return Case(query, epochs, tree, [Replanned(2, query.plan("a (b (c d))"), "hybmig", {5: 2})])


def test_the_papers_own_error() -> None:
    case = minimal()
    expected = oracle(case.query, case.epochs)
    assert sum(expected[6].values()) == 1
    for time, results, running in run(case):
        if time == 5:
            assert isinstance(running.migration, HybMig)
            (task,) = (task for task in running.migration.tasks if not task.cut.is_shared)
            assert [node.streams for node in task.incomplete] == [frozenset("bcd")], "S_CD has been completed"
        assert results == expected.get(time, Counter())


# ------------------------------------------------------------------------------------------------- broken on purpose


def max_for_span(patch: pytest.MonkeyPatch) -> None:
    """The paper's window: on the latest times of the two sides."""

    def combine(self: Joint, one: Any, other: Any) -> Any:
        parts = self.pick(one[0] + other[0])
        if abs(latest(one) - latest(other)) > self.window or not all(check.holds(parts) for check in self.checks):
            return None
        return parts, min(earliest(one), earliest(other)), max(latest(one), latest(other))

    patch.setattr(Joint, "combine", combine)


def no_keep(patch: pytest.MonkeyPatch) -> None:
    """The old plan keeps everything."""
    patch.setattr(migrating, "keeps", lambda chains, composite: True)


def printed_chains(patch: pytest.MonkeyPatch) -> None:
    """Figure 3.9 as printed: a completed state's streams are replaced by those of the node above, all old."""
    patch.setattr(Chain, "extended", lambda self, c: Chain((type(c)(c.streams, c.slots, self.conditions[0].before),)))


def early_insertion(patch: pytest.MonkeyPatch) -> None:
    """What is new goes into states before the pairs of one time are made."""
    really = tree_step.step

    def step(tree: Any, query: Any, made: Any, states: Any, evaluations: Any, keep: Any = None) -> Any:
        tree_step.insert({s: d for s, d in made.items() if len(s) == 1}, states)
        return really(tree, query, made, states, evaluations, keep)

    patch.setattr(migrating, "step", step)


def late_end(patch: pytest.MonkeyPatch) -> None:
    """The old plan is dropped too early."""
    patch.setattr(migrating.PlanMigration, "is_over", lambda self, now: now >= self.time + self.query.window - 1)


@pytest.mark.parametrize("break_it", [max_for_span, no_keep, printed_chains, early_insertion, late_end])
def test_a_broken_rule_is_found_out(break_it: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    assert any(fails(seed) for seed in range(CASES)) or any(fails(seed, True) for seed in range(CASES))


def fails(seed: int, dense: bool = False) -> bool:
    try:
        check(dense_case(seed) if dense else random_case(seed), seed)
    except AssertionError:
        return True
    return False


# ------------------------------------------------------------------------------------------------------------- trees


def test_share_of_the_old_plan() -> None:
    """Of the 2^n - 1 combinations of old and new with something old, the old plan makes 2^n - 3^|L| 2^(n-2|L|) - 1...
    and the all-new ones it never does: 3 of 15 for a right-deep plan of four, 6 for a bushy one."""
    for text, share in [("a (b (c d))", 3), ("(a b) (c d)", 6)]:
        query = Query(tuple("abcd"), 10)
        new = query.plan(text)
        entries = [node.streams for node in lowest(new)]
        old_only = 0
        for bits in range(1, 16):  # which streams are new
            fresh = {name for i, name in enumerate("abcd") if bits >> i & 1}
            old_only += any(not (entry & fresh) for entry in entries)
        assert old_only == share == 2**4 - 3 ** len(entries) * 2 ** (4 - 2 * len(entries)) - 1


def test_common_parts_are_sources_of_tasks() -> None:
    old, new = (parse(text, "abcdef") for text in ("((((a b) c) d) e) f", "((((a b) c) d) (e f))"))
    cuts = decompose(old, new)
    assert [(sorted(cut.streams), cut.is_shared) for cut in cuts] == [
        (["a", "b"], True),
        (["a", "b", "c"], True),
        (["a", "b", "c", "d"], True),
        (["a", "b", "c", "d", "e", "f"], False),
    ]
    assert str(cuts[-1].old) == "([a b c d] e) f" and len(list(joins(cuts[-1].new))) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("(a b) x", "'x', which is no stream: there are a, b, c"),
        ("a b", "leaves out c"),
        ("(a b) a", "has a twice"),
        ("a b c", "3 parts side by side"),
        ("(a b c", "3 parts side by side"),
        ("((a b) c", "does not close"),
        ("(a b)) c", "a bracket too many"),
        ("", "joins nothing"),
        ("() a", "joins nothing"),
        (7, "written as text"),
    ],
)
def test_plans_that_cannot_be(text: Any, complaint: str) -> None:
    with pytest.raises(BadPlan, match=complaint):
        Query(("a", "b", "c"), 5).plan(text)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Query(("a",), 5), "two streams at least"),
        (lambda: Query(("a", "a"), 5), "one name"),
        (lambda: Query(("a", "b c"), 5), "cannot name a stream"),
        (lambda: Query(("a", "b"), 0), "positive integer"),
        (lambda: Query(("a", "b"), 1.5), "positive integer"),  # type: ignore[arg-type]
        (lambda: Query(("a", "b"), 5, on=-1), "a function from a record"),
        (lambda: Query(("a", "b"), 5, where={("a", "b"): lambda x: True}), "cannot be called with a record of each"),  # type: ignore[dict-item, misc]
        (lambda: Query(("a", "b"), 5, where={("a", "c"): lambda x, y: True}), "name two of the streams"),
        (lambda: Query(("a", "b"), 5, where=[("a", "b")]), "predicates by two streams"),  # type: ignore[arg-type]
        (lambda: Query(("a", "b"), 5, where={("a", "b"): 3}), "cannot be called"),  # type: ignore[dict-item]
    ],
)
def test_queries_that_cannot_be(make: Any, complaint: str) -> None:
    with pytest.raises(BadPlan, match=complaint):
        make()


def test_a_replan_to_the_same_plan_does_nothing() -> None:
    running = Running(Query(("a", "b", "c"), 5), parse("(a b) c", "abc"))
    running.replan(parse("c (b a)", "abc"), "hybmig", 3)
    assert running.migration is None
