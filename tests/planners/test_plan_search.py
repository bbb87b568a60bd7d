"""The optimiser of join plans: its search against all trees, its costs against plans that run, its samples."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest

from megaphone.plans import migrating
from megaphone.plans.migrating import Running
from megaphone.plans.query import Query
from planners.errors import BadRequest
from planners.plans import costs, search
from planners.plans.costs import WorkModel, migration_costs
from planners.plans.decision import compare
from planners.plans.orders import nodes_of, read, streams_of, write
from planners.plans.sampling import JoinSample, JoinSampler, Reservoir, estimate, merged
from planners.plans.search import cheapest
from planners.plans.statistics import Cardinalities, JoinStatistics

# -------------------------------------------------------------------------------------- the oracle: every tree, plainly


def every_tree(names: tuple[str, ...]) -> Iterator[Any]:
    """Every binary tree over these, each once: as nested pairs."""
    if len(names) == 1:
        yield names[0]
        return
    first, rest = names[0], names[1:]
    for size in range(len(rest)):
        for with_first in itertools.combinations(rest, size):
            others = tuple(name for name in rest if name not in with_first)
            for left in every_tree((first, *with_first)):
                for right in every_tree(others):
                    yield (left, right)


def leaves(tree: Any) -> list[str]:
    return [tree] if isinstance(tree, str) else leaves(tree[0]) + leaves(tree[1])


class Plain:
    """Costs by definition: what each record does at each join above it, in steps per unit of time."""

    def __init__(self, known: JoinStatistics, nested: bool) -> None:
        self.known = known
        self.nested = nested
        self.share, self.size, self.cost = (cache(f) for f in (self._share, self._size, self._cost))

    def _share(self, names: frozenset[str]) -> float:
        """All have one key: what is known, or else the likeliest tree of pairs, by trying all."""
        known = self.known
        if names in known.together:
            return known.together[names]
        if len(names) < 3:
            return known.same_key.get(names, 1.0) if len(names) == 2 else 1.0
        return max(
            self.share(names - {one}) * max(known.same_key.get(frozenset((one, o)), 1.0) for o in names - {one})
            for one in names
        )

    def _size(self, names: frozenset[str]) -> float:
        found = self.share(names)
        for name in names:
            found *= self.known.rates[name] * self.known.window
        for pair in itertools.combinations(names, 2):
            found *= self.known.holds.get(frozenset(pair), 1.0)
        return found

    def _cost(self, tree: Any) -> float:
        if isinstance(tree, str):
            return 0.0
        left, right = frozenset(leaves(tree[0])), frozenset(leaves(tree[1]))
        looked = 1.0 if self.nested else self.share(left | right) / self.share(left) / self.share(right)
        per_time = [len(names) * self.size(names) / self.known.window for names in (left, right, left | right)]
        here = sum(per_time) + (per_time[0] * self.size(right) + per_time[1] * self.size(left)) * looked
        return float(here + self.cost(tree[0]) + self.cost(tree[1]))


def random_statistics(seed: int, most: int = 5) -> JoinStatistics:
    chance = Random(seed)
    names = tuple("abcdef"[: chance.randint(2, most)])
    pairs, triples = ([frozenset(some) for some in itertools.combinations(names, size)] for size in (2, 3))
    return JoinStatistics(
        names,
        chance.choice([1.0, 30.0]),
        {name: 10 ** chance.uniform(-1, 2) for name in names},
        {pair: 10 ** chance.uniform(-4, 0) for pair in pairs if chance.random() < 0.9},
        {pair: chance.random() for pair in pairs if chance.random() < 0.3},
        {some: 10 ** chance.uniform(-6, -2) for some in triples if chance.random() < 0.2},
    )


@pytest.mark.parametrize("nested", [False, True])
def test_no_tree_is_cheaper(nested: bool) -> None:
    bushy = 0
    for seed in range(60):
        known = random_statistics(seed)
        plain = Plain(known, nested)
        best = min(map(plain.cost, every_tree(known.streams)))
        found = cheapest(known, nested)
        assert found.steps == pytest.approx(best), f"seed {seed}"
        assert plain.cost(found.order) == pytest.approx(found.steps)
        bushy += any(len(left) > 1 and len(right) > 1 for left, right in nodes_of(found.order))
    assert bushy > 5


def test_six_streams_and_ten() -> None:
    assert sum(1 for _ in every_tree(tuple("abcdef"))) == 945  # 9!!
    for seed in range(1001, 1003):
        known = random_statistics(seed, 6)
        assert cheapest(known).steps == pytest.approx(min(map(Plain(known, False).cost, every_tree(known.streams))))
    ten = tuple("abcdefghij")
    rates = {name: 1.0 + i for i, name in enumerate(ten)}
    found = cheapest(JoinStatistics(ten, 5.0, rates, {frozenset(p): 0.05 for p in itertools.combinations(ten, 2)}))
    assert streams_of(found.order) == set(ten)


def test_a_search_without_bushy_plans_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    really = search._candidates

    def left_deep(bits: int, *rest: Any) -> Any:
        for found in really(bits, *rest):
            if any(isinstance(side, str) for side in found[-1]):
                yield found

    monkeypatch.setattr(search, "_candidates", left_deep)
    with pytest.raises(AssertionError):
        test_no_tree_is_cheaper(False)


# -------------------------------------------------------------------------------------------- costs against what runs


def run_plan(names: str, plan: str, window: int, seed: int) -> tuple[float, float, JoinStatistics]:
    """A join of streams of which the first is rare: evaluations per time, tuples and composites once it is full, and
    what a sampler says."""
    chance = Random(seed)
    query = Query(tuple(names), window, on=0)
    running, sampler = Running(query, query.plan(plan)), JoinSampler[Any](tuple(names), 400, seed)
    counted, tuples, times = 0, 0, 0
    for time in range(6 * window):
        keys = {name: chance.randrange(8) if name != names[0] or chance.random() < 0.2 else -time - 1 for name in names}
        arrivals = {name: [(key, time)] for name, key in keys.items()}
        before = running.evaluations.count
        running.run(time, arrivals)
        for name, records in arrivals.items():
            sampler.see(name, time, records)
        if time >= 2 * window:
            counted, tuples, times = counted + running.evaluations.count - before, tuples + running.tuples, times + 1
    return counted / times, tuples / times, estimate(sampler.take(), window, lambda record: record[0])


@pytest.mark.parametrize("plan", ["((a b) c) d", "a (b (c d))", "(a b) (c d)"])
def test_predictions_are_near_what_a_plan_does(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrating, "_PURGES", 40)  # at every time: nothing expired is looked at
    counted, tuples, known = run_plan("abcd", plan, 40, 3)
    order, sizes = read(plan, "abcd"), Cardinalities(known)
    pairs = sum(sizes.made(l) * sizes.size(r) + sizes.made(r) * sizes.size(l) for l, r in nodes_of(order))  # noqa: E741
    assert counted == pytest.approx(pairs, rel=0.25)
    assert tuples == pytest.approx(WorkModel(sizes).tuples(order), rel=0.25)


def test_the_plan_with_the_rare_stream_first_is_found() -> None:
    known = run_plan("abcd", "b (c (d a))", 16, 5)[-1]
    found = compare("a (b (c d))", known)
    assert "a" in next(iter(nodes_of(found.best.order)))[0] and found.share > 0.2


def test_costs_of_migrating_are_the_papers() -> None:
    """Section 4.4, with T in seconds: steps of a record over the capacity."""
    known = random_statistics(7)
    model = WorkModel(Cardinalities(known))
    trees = list(every_tree(known.streams))
    old, new = trees[0], trees[-1]
    window, before, after = known.window, model.order(old), model.order(new)
    capacity = 3 * (before + after)
    n_tau = sum(known.rates.values())
    t_old, t_new = (steps / n_tau / capacity for steps in (before, after))
    found = migration_costs(model, old, new, capacity)
    assert found["gms"].duration == pytest.approx(n_tau * window * t_new) == found["gms"].silence
    first = n_tau * window * t_new / (1 - n_tau * t_old)
    second = n_tau * first * t_new / (1 - n_tau * (t_old + t_new))
    assert found["ghm"].duration == pytest.approx(first + second)
    assert found["gpt"].duration == found["parallel-track"].duration == window
    assert found["hybmig"].duration <= window and found["hybmig"].silence == 0
    fill = found["moving-state"].steps
    assert found["moving-state"].silence == pytest.approx(fill / capacity)
    busy = migration_costs(model, old, new, (before + after) / 2)
    assert busy["ghm"].duration == math.inf and busy["hybmig"].duration == window
    unknown = migration_costs(model, old, new)
    assert unknown["moving-state"].duration is None and unknown["gpt"].duration == window
    with pytest.raises(BadRequest, match="capacity"):
        migration_costs(model, old, new, 0.0)


def test_what_both_plans_have_is_not_filled() -> None:
    known = JoinStatistics(tuple("abcd"), 10.0, dict.fromkeys("abcd", 1.0))
    model = WorkModel(Cardinalities(known))
    old = read("((a b) c) d", "abcd")
    assert model.filling(old, old) == model.filling(old, read("d (c (a b))", "abcd")) == 0
    assert model.filling(old, read("(a b) (c d)", "abcd")) == 10 * 10 + 100  # S_CD: pairs, and what they make


# ------------------------------------------------------------------------------------------------------------ samples


def test_every_record_is_kept_as_likely() -> None:
    kept: Counter[int] = Counter()
    for seed in range(600):
        held = Reservoir[int](10, Random(seed))
        for first in range(0, 100, 7):
            held.see(range(first, min(100, first + 7)))
        assert held.seen == 100 and len(set(held.items)) == 10
        kept.update(held.items)
    assert all(30 < kept[i] < 95 for i in range(100)), kept  # 60 in the mean, with a deviation of 7


def test_a_small_stream_is_kept_whole() -> None:
    held = Reservoir[int](10, Random(1))
    held.see([1, 2])
    held.see([3])
    assert held.items == [1, 2, 3] and held.seen == 3


def records_of(seed: int, count: int) -> dict[str, tuple[Any, ...]]:
    chance = Random(seed)
    keys = [min(9, int(chance.expovariate(0.5))) for _ in range(3 * count)]
    return {name: tuple((key, chance.random()) for key in keys[i::3]) for i, name in enumerate("abc")}


def test_shares_of_everything_are_exact() -> None:
    records = records_of(4, 60)
    whole = JoinSample(records, dict.fromkeys("abc", 60), 0.0, 30.0)
    known = estimate(whole, 5.0, lambda r: r[0], {("c", "a"): lambda one, other: one[1] < other[1]})
    assert known.rates == dict.fromkeys("abc", 2.0) and known.least_sampled == 60
    for pair in itertools.combinations("abc", 2):
        same = sum(one[0] == other[0] for one in records[pair[0]] for other in records[pair[1]])
        assert known.same_key[frozenset(pair)] == pytest.approx((same + 0.5) / 3600)
    triples = sum(a[0] == b[0] == c[0] for a in records["a"] for b in records["b"] for c in records["c"])
    assert known.together[frozenset("abc")] == pytest.approx(triples / 60**3)
    pairs = [(one, other) for one in records["c"] for other in records["a"] if one[0] == other[0]]
    held = sum(one[1] < other[1] for one, other in pairs)
    assert known.holds[frozenset("ac")] == pytest.approx((held + 0.5) / (len(pairs) + 1))


def test_many_pairs_are_tried_in_part() -> None:
    records = {name: tuple((0, i / 300) for i in range(300)) for name in "ab"}
    known = estimate(JoinSample(records, {"a": 300, "b": 300}, 0.0, 1.0), 5.0, None, {("a", "b"): lambda a, b: a < b})
    assert known.holds[frozenset("ab")] == pytest.approx(0.5, abs=0.05) and known.same_key == {}


def test_samples_of_workers_are_merged_by_what_they_saw() -> None:
    def sample(seen: int, key: int, size: int) -> JoinSample[int]:
        return JoinSample({"a": (key,) * size}, {"a": seen}, 0.0, 10.0)

    both = merged([sample(3000, 1, 100), sample(1000, 2, 100)], size=100)
    assert Counter(both.records["a"]) == {1: 75, 2: 25} and both.seen == {"a": 4000}
    little = merged([sample(3000, 1, 60), sample(20, 2, 20), JoinSample({"a": ()}, {"a": 0}, math.inf, -math.inf)])
    assert 55 <= Counter(little.records["a"])[1] <= 60 and little.span == 10.0
    with pytest.raises(BadRequest, match="no sample"):
        merged([])


def test_nested_domains_are_exact() -> None:
    """Uniform keys, each stream's among those of the next: the likeliest pairs give the share of all."""
    domains = {"a": 2, "b": 10, "c": 40}
    same = {frozenset(p): 1 / max(domains[x] for x in p) for p in itertools.combinations("abc", 2)}
    known = JoinStatistics(tuple("abc"), 1.0, dict.fromkeys("abc", 1.0), same)
    assert Cardinalities(known).share(frozenset("abc")) == pytest.approx(1 / 10 / 40)


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("a b", "once"), ("a b c c", "once"), ("a b c", "joins 3 parts"), ("((a b) c", "close"), ("a b) c", "too many")],
)
def test_orders_that_cannot_be(text: str, complaint: str) -> None:
    with pytest.raises(BadRequest, match=complaint):
        read(text, "abc")


def test_orders_have_one_form() -> None:
    assert write(read("(d c) (b a)", "abcd")) == "(a b) (c d)" and read("a", "a") == "a"


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: JoinStatistics(("a",), 1.0, {"a": 1.0}), "2 to 10 streams"),
        (lambda: JoinStatistics(tuple("abcdefghijk"), 1.0, dict.fromkeys("abcdefghijk", 1.0)), "2 to 10 streams"),
        (lambda: JoinStatistics(("a", "b"), 0.0, {"a": 1.0, "b": 1.0}), "window"),
        (lambda: JoinStatistics(("a", "b"), 1.0, {"a": 1.0}), "needs a rate"),
        (lambda: JoinStatistics(("a", "b"), 1.0, {"a": 1.0, "b": 1.0}, {frozenset("ab"): 1.5}), "same_key has 1.5"),
        (lambda: JoinStatistics(("a", "b"), 1.0, {"a": 1.0, "b": 1.0}, {frozenset("ac"): 0.5}), "name streams"),
        (lambda: JoinSampler(("a",), 0), "a record at least"),
        (lambda: estimate(JoinSample({"a": (), "b": (1,)}, {"a": 0, "b": 1}, 0.0, 1.0), 5.0), "nothing was seen of a"),
    ],
)
def test_statistics_that_cannot_be(make: Any, complaint: str) -> None:
    with pytest.raises(BadRequest, match=complaint):
        make()


def test_methods_have_costs() -> None:
    known = random_statistics(3)
    tree = next(every_tree(known.streams))
    assert tuple(migration_costs(WorkModel(Cardinalities(known)), tree, tree)) == costs.METHODS


def skewed_epochs(chance: Random, names: str, window: int) -> list[dict[str, list[Any]]]:
    """Streams of different rates and keys, some skewed, some rare."""
    rates = {name: chance.choice([0.3, 0.6, 1.0]) for name in names}
    domains = {name: chance.choice([3, 6, 12]) for name in names}
    skewed = {name: chance.random() < 0.5 for name in names}

    def key(name: str) -> int:
        one = chance.randrange(domains[name])
        return min(one, chance.randrange(domains[name])) if skewed[name] else one

    return [
        {name: [(key(name), time)] if chance.random() < rates[name] else [] for name in names}
        for time in range(6 * window)
    ]  # fmt: skip


def evaluations(query: Query, plan: str, epochs: list[dict[str, list[Any]]]) -> int:
    running = Running(query, query.plan(plan))
    for time, epoch in enumerate(epochs):
        running.run(time, epoch)
    return running.evaluations.count


def test_the_chosen_plan_is_nearly_the_best_when_all_are_run() -> None:
    """All 15 plans of four streams are run; the one that samples of a fifth of the records suggest is close to the
    best of them, and far from the worst."""
    regrets, spreads = [], []
    for seed in range(8):
        chance = Random(seed)
        query = Query(tuple("abcd"), 12, on=0)
        epochs = skewed_epochs(chance, "abcd", 12)
        sampler = JoinSampler[Any](query.streams, 15, seed)
        for time, epoch in enumerate(epochs):
            for name, records in epoch.items():
                sampler.see(name, time, records)
        chosen = cheapest(estimate(sampler.take(), 12.0, query.key_of), nested=True)
        counts = {write(tree): evaluations(query, write(tree), epochs) for tree in every_tree(query.streams)}
        regrets.append(counts[str(chosen)] / min(counts.values()))
        spreads.append(max(counts.values()) / min(counts.values()))
    assert max(regrets) < 1.6 and math.prod(regrets) ** (1 / 8) < 1.15, regrets
    assert math.prod(spreads) ** (1 / 8) > 1.5, spreads
