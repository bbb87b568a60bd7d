"""What planners refuse, in one place. Each message says what was asked for and what to ask for instead."""

from __future__ import annotations


class PlannerError(ValueError):
    """The root of the planners' own errors."""


class BadRequest(PlannerError):
    """Assignments, sizes, loads or limits that make no sense."""


class NothingBalanced(PlannerError):
    """The planner knows no assignment that is balanced within tau. The request made sense, and this is the answer."""


class NotInTables(NothingBalanced, BadRequest):
    """None of the partitionings that the planner's tables know is balanced within tau: loads have changed since."""


class Infeasible(NothingBalanced):
    """No assignment of intervals to so many nodes is balanced within tau.

    `smallest_tau` is the least tau for which there is one, with the same tasks and as many nodes.
    """

    def __init__(self, nodes: int, tau: float, smallest_tau: float) -> None:
        self.nodes = nodes
        self.tau = tau
        self.smallest_tau = smallest_tau
        super().__init__(
            f"no cut of the tasks into {nodes} intervals keeps every load within {1 + tau:g} times the mean "
            f"(tau = {tau:g}). Ask for tau = {round_up(smallest_tau)} or more, or for another number of nodes; finer "
            "tasks (more bins) would balance better."
        )

    def __reduce__(self) -> tuple[type[Infeasible], tuple[int, float, float]]:
        return Infeasible, (self.nodes, self.tau, self.smallest_tau)  # executors hand errors to their driver


def round_up(tau: float, digits: int = 6) -> float:
    """A tau for people to copy: never less than the exact one, or it would be infeasible again.

    >>> round_up(0.25490196078431376)
    0.254902
    >>> round_up(0.1176470588235294)
    0.117648
    """
    rounded = round(tau, digits)
    return rounded if rounded >= tau else round(rounded + 10.0**-digits, digits)
