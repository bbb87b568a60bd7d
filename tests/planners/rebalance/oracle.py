"""The algorithms of section III, read off the paper one key at a time, in fractions. Slow, and sharing no code.

Costs and states are whole numbers here, so that nothing depends on rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

Psi = Callable[[int], Fraction]


@dataclass
class Case:
    cost: list[int]
    state: list[int]
    home: list[int]
    current: list[int]
    instances: int
    theta: Fraction
    table: int
    beta: int = 1

    @property
    def limit(self) -> Fraction:
        return (1 + self.theta) * Fraction(sum(self.cost), self.instances)

    def gamma(self, k: int) -> Fraction:
        if self.cost[k] == 0:
            return Fraction(0)
        return Fraction(self.cost[k] ** self.beta, self.state[k]) if self.state[k] else Fraction(10**30)

    def by_cost(self, k: int) -> Fraction:
        return Fraction(self.cost[k])

    def entries(self, where: list[int]) -> int:
        return sum(a != h for a, h in zip(where, self.home, strict=True))

    def moved(self, where: list[int]) -> int:
        return sum(s for s, a, f in zip(self.state, where, self.current, strict=True) if a != f)

    def loads(self, where: list[int]) -> list[int]:
        return [sum(c for c, a in zip(self.cost, where, strict=True) if a == d) for d in range(self.instances)]


def workflow(case: Case, psi: Psi, back: int) -> list[int]:
    """Phases I to III. The instance of each key."""
    where: list[int | None] = list(case.current)
    table = sorted((k for k in range(len(where)) if where[k] != case.home[k]), key=lambda k: (case.state[k], k))
    for k in table[:back]:
        where[k] = case.home[k]
    candidates: set[int] = set()
    for d in range(case.instances):
        for k in sorted((k for k in range(len(where)) if where[k] == d), key=lambda k: (-psi(k), k)):
            if load(case, where, d) <= case.limit or case.cost[k] == 0:
                break
            where[k] = None
            candidates.add(k)
    return llfd(case, where, candidates, psi)


def load(case: Case, where: list[int | None], d: int) -> int:
    return sum(case.cost[k] for k in range(len(where)) if where[k] == d)


def llfd(case: Case, where: list[int | None], candidates: set[int], psi: Psi) -> list[int]:
    """Algorithm 1, with the corrections: the running estimate, `<=`, and the least loaded for a key that fits
    nowhere."""
    while candidates:
        k = min(candidates, key=lambda k: (-case.cost[k], k))
        candidates.remove(k)
        instances = sorted(range(case.instances), key=lambda d: (load(case, where, d), d))
        for d in instances:
            pushed = adjust(case, where, k, d, psi)
            if pushed is not None:
                for other in pushed:
                    where[other] = None
                candidates |= pushed
                where[k] = d
                break
        else:
            where[k] = instances[0]
    return [d for d in where if d is not None]


def adjust(case: Case, where: list[int | None], k: int, d: int, psi: Psi) -> set[int] | None:
    """What must leave d so that k can come; None if it cannot come."""
    total = load(case, where, d) + case.cost[k]
    pushed: set[int] = set()
    cheaper = (o for o in range(len(where)) if where[o] == d and case.cost[o] < case.cost[k])
    for other in sorted(cheaper, key=lambda o: (-psi(o), o)):
        if total <= case.limit:
            break
        pushed.add(other)
        total -= case.cost[other]
    return pushed if total <= case.limit else None


def plan_llfd(case: Case) -> list[int]:
    return workflow(case, case.by_cost, 0)


def plan_min_table(case: Case) -> list[int]:
    return workflow(case, case.by_cost, case.entries(case.current))


def plan_min_mig(case: Case) -> list[int]:
    return workflow(case, case.gamma, 0)


def plan_mixed(case: Case) -> list[int]:
    back, whole = 0, case.entries(case.current)
    while True:
        where = workflow(case, case.gamma, back) if back < whole or back == 0 else plan_min_table(case)
        over = case.entries(where) - case.table
        if over <= 0 or (back >= whole and back > 0):
            return where
        back += over
        if whole == 0:
            return plan_min_table(case)


def plan_mixed_bf(case: Case) -> list[int]:
    tried = [workflow(case, case.gamma, n) for n in range(case.entries(case.current) + 1)] + [plan_min_table(case)]

    def rank(where: list[int]) -> tuple[Fraction, int, int, int]:
        excess = max(Fraction(0), max(case.loads(where)) - case.limit)
        return excess, max(0, case.entries(where) - case.table), case.moved(where), case.entries(where)

    return min(tried, key=rank)


def plan_mixed_bf_fewest(case: Case) -> list[int]:
    """The other reading: the first that is in bounds, in the order of entries moved back."""
    tried = [workflow(case, case.gamma, n) for n in range(case.entries(case.current) + 1)] + [plan_min_table(case)]
    in_bounds = (w for w in tried if max(case.loads(w)) <= case.limit and case.entries(w) <= case.table)
    return next(in_bounds, plan_mixed_bf(case))
