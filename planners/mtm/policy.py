"""What fixed choices cost for ever: the cheap half of policy iteration.

A sweep finds for each partitioning the best target of each node count, given the costs so far. That is the expensive
half. The costs that follow if those choices are kept are a sparse linear system, and solving it between two sweeps
makes a handful of sweeps do where value iteration alone needs one for each factor of gamma.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dataflow.compiled.kernel import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PRECISION = 1e-15  # a change that is this small a share of the costs is rounding


@dataclass(frozen=True, eq=False)
class Policy:
    """Choices for consecutive partitionings of one node count.

    `direct` is what the next migration costs on average; `targets[i, j]` the rank that is chosen if the j-th node count
    comes next (-1 if it never does).
    """

    direct: Floats
    targets: Ints


def evaluate(policies: list[Policy], matrix: Floats, gamma: float, guess: list[Floats]) -> list[Floats]:
    """By node count, the costs of choosing so for ever, from a guess. The j-th policy is the j-th node count's.

    Only partitionings that some choice leads to depend on each other, mostly few: those are iterated, in place, and the
    others follow in one pass. O(partitionings x node counts), and a multiple of 1 / (1 - gamma) for the few.
    """
    starts = np.cumsum([0, *(len(policy.direct) for policy in policies)])
    targets = np.concatenate([np.where(p.targets >= 0, p.targets + starts[:-1], -1) for p in policies])
    direct = np.concatenate([policy.direct for policy in policies])
    costs = np.concatenate(guess)
    row = np.repeat(np.arange(len(policies)), np.diff(starts))
    lasting = np.unique(targets[targets >= 0])
    _settle(lasting, row, direct, targets, gamma * matrix, costs, _rounds(gamma))
    _settle(np.arange(len(costs)), row, direct, targets, gamma * matrix, costs, 1)
    return np.split(costs, starts[1:-1])


def evaluate_lasting(row: Ints, direct: Floats, targets: Ints, weights: Floats, guess: Floats) -> Floats:
    """The costs of partitionings that choices lead to, if those choices are kept for ever: the part of `evaluate` that
    iterates. `row`: by partitioning, the place of its node count; `targets` are places among these partitionings."""
    costs = guess.copy()
    gamma = float(weights.sum(axis=1).max(initial=0.0))
    _settle(np.arange(len(costs)), row, direct, targets, weights, costs, _rounds(gamma))
    return costs


def follow(direct: Floats, targets: Ints, weights: Floats, costs: Floats) -> Floats:
    """The costs of partitionings of one node count, of which `weights` are the likely next ones (times gamma), from the
    costs of those that they lead to. `targets` are places among `costs`, -1 if there is none."""
    after = np.where(targets >= 0, costs[targets], 0.0) if len(costs) else np.zeros(targets.shape)
    return np.asarray(direct + after @ weights, np.float64)


def _rounds(gamma: float) -> int:
    return int(np.ceil(np.log(PRECISION) / np.log(gamma))) if gamma else 1


@kernel()
def _settle(which: Ints, row: Ints, direct: Floats, targets: Ints, weights: Floats, costs: Floats, rounds: int) -> None:
    """Applies fixed choices to these partitionings, in place, until rounding is all that changes."""
    for _ in range(rounds):
        change = scale = 0.0
        for i in which:
            new = direct[i]
            for j in range(targets.shape[1]):
                if targets[i, j] >= 0:
                    new += weights[row[i], j] * costs[targets[i, j]]
            change, scale = max(change, abs(new - costs[i])), max(scale, abs(new))
            costs[i] = new
        if change <= PRECISION * scale:
            return
