"""Random problems, small enough for the oracle and mean enough to be worth it: ties, idle keys, keys above the mean."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from planners.rebalance import RebalancePlan, llfd, min_mig, min_table, mixed, mixed_bf
from tests.planners.rebalance import oracle
from tests.planners.rebalance.oracle import Case

PLANNERS = {"llfd": llfd, "min_table": min_table, "min_mig": min_mig, "mixed": mixed, "mixed_bf": mixed_bf}
ORACLES = {name: getattr(oracle, f"plan_{name}") for name in PLANNERS}
WITH_BETA = ("min_mig", "mixed", "mixed_bf")


@st.composite
def cases(draw: st.DrawFn, most_keys: int = 24) -> Case:
    instances = draw(st.integers(1, 5))
    keys = draw(st.integers(0, most_keys))
    largest = draw(st.sampled_from([3, 12, 100]))
    places = st.lists(st.integers(0, instances - 1), min_size=keys, max_size=keys)
    home = draw(places)
    stay = draw(st.lists(st.booleans(), min_size=keys, max_size=keys))
    return Case(
        cost=draw(st.lists(st.integers(0, largest), min_size=keys, max_size=keys)),
        state=draw(st.lists(st.integers(0, 9), min_size=keys, max_size=keys)),
        home=home,
        current=[h if s else c for h, s, c in zip(home, stay, draw(places), strict=True)],
        instances=instances,
        theta=draw(st.sampled_from([Fraction(0), Fraction(1, 50), Fraction(1, 5), Fraction(1)])),
        table=draw(st.integers(0, 10)),
        beta=draw(st.sampled_from([1, 2])),
    )


def arguments(case: Case, name: str) -> dict[str, Any]:
    beta = {"beta": float(case.beta)} if name in WITH_BETA else {}
    return {
        "cost": case.cost,
        "state": case.state,
        "home": np.array(case.home, int),
        "current": np.array(case.current, int),
        "instances": case.instances,
        "theta": float(case.theta),
        "table": case.table,
        **beta,
    }


def run(case: Case, name: str, **more: Any) -> RebalancePlan:
    return PLANNERS[name](**arguments(case, name), **more)
