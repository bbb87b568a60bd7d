"""Which plans an operator can have, and by which methods it gets to them: what is refused where it is sent. Pure."""

from __future__ import annotations

from dataclasses import replace

from megaphone.control.replans import PlanSpace, Replan
from megaphone.errors import ControlError
from megaphone.plans.general import GENERAL, Opaque
from megaphone.plans.migrating import METHODS
from megaphone.plans.query import Query
from megaphone.plans.trees import BadPlan, Tree, canonical


class TreeSpace(PlanSpace):
    """The plans of a join: trees over its streams. Equal ones are written alike."""

    def __init__(self, name: str, query: Query, first: Tree) -> None:
        self._name = name
        self._query = query
        self.first = str(canonical(first, query.streams))

    def check(self, replan: Replan) -> Replan:
        if replan.plan is None:
            return replan
        method = replan.method or "hybmig"
        if method not in METHODS:
            raise ControlError(
                f"{self._name}: {method} is for opaque plans; a join's plans are known, and get to others by "
                f"{', '.join(METHODS)}"
            )
        try:
            tree = self._query.plan(replan.plan)
        except BadPlan as error:
            raise ControlError(f"{self._name}: {error}") from None
        return replace(replan, plan=str(canonical(tree, self._query.streams)), method=method)


class NamedPlans(PlanSpace):
    """The plans of an operator that has some by name."""

    def __init__(self, name: str, opaque: Opaque, first: str) -> None:
        self._name = name
        self._plans = opaque.plans
        self.first = first

    def check(self, replan: Replan) -> Replan:
        if replan.plan is None:
            return replan
        method = replan.method or "ghm"
        if method not in GENERAL:
            raise ControlError(
                f"{self._name}: {method} needs to know what is in a plan, and these are opaque: they get to others by "
                f"{', '.join(GENERAL)}"
            )
        if method == "ghm" and not replan.background:
            raise ControlError(f"{self._name}: ghm works in the background alone; without it use gms or gpt")
        if replan.plan not in self._plans:
            raise ControlError(f"{self._name}: there is no plan {replan.plan!r}: there are {', '.join(self._plans)}")
        return replace(replan, method=method)
