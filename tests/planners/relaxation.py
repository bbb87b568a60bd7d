"""The most state that could stay, if intervals could be chosen in fractions: a linear program, solved by scipy's HiGHS.

A choice is an interval [p, x) within the limit, free or kept by an old node. Chosen intervals form a path from 0 to
m of at most n' steps, and each old node keeps at most once. Any assignment is such a path: the optimum bounds all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix


def most_kept(cuts: Sequence[int], nodes: int, sizes: Sequence[int], loads: Sequence[int], tau: float) -> float:
    m, n = len(sizes), len(cuts) - 1
    limit = (1 + tau) * sum(loads) / nodes + 1e-9
    choices: list[tuple[int, int, int]] = []
    gains: list[int] = []
    for p in range(m):
        for x in range(p + 1, m + 1):
            if sum(loads[p:x]) > limit:
                break
            choices.append((p, x, -1))
            gains.append(0)
            for y in range(n):
                if earned := sum(sizes[max(p, cuts[y]) : max(p, min(x, cuts[y + 1]))]):
                    choices.append((p, x, y))
                    gains.append(earned)
    columns = np.arange(len(choices))
    begins, ends, owners = (np.array(part) for part in zip(*choices, strict=True))
    ones = np.ones(len(choices))
    flow = coo_matrix((ones, (begins, columns)), (m + 1, len(choices))) - coo_matrix(
        (ones, (ends, columns)), (m + 1, len(choices))
    )
    right = np.zeros(m + 1)
    right[0], right[m] = 1, -1
    kept = owners >= 0
    rows = np.where(kept, owners, n)
    once = coo_matrix((kept.astype(float), (rows, columns)), (n + 1, len(choices))).tolil()
    once[n, :] = 1.0  # the last row counts all intervals
    result = linprog(
        -np.array(gains, float), A_ub=once.tocsr(), b_ub=[1.0] * n + [float(nodes)], A_eq=flow.tocsr(), b_eq=right
    )
    assert result.status == 0, result.message
    return float(-result.fun)
