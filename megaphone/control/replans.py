"""Another plan for a join, as of a time: `Replan`, what several of them mean together, and which are refused. Pure.

An operator whose plan can change has a *plan space*, which knows what a plan of it is and which methods can serve. What
is known here of an operator's plans is what was said on its control stream: its bins have the truth.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from megaphone.control.checks import all_within, brief
from megaphone.errors import ControlError

METHODS = ("moving-state", "parallel-track", "hybmig", "gms", "gpt", "ghm")
Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Replan:
    """As of the time at which this is sent, bins have another plan. `bins`: all, unless you say.

    `method`: how they get there. For joins "moving-state", "parallel-track" or "hybmig", which is the usual one; for
    opaque plans "gms", "gpt" or "ghm", which is the usual one there. `share` and `background` are for HybMig: whether
    parts that both plans have in common are left alone, and whether states are computed when the worker is idle.
    `order`: with "paper", parallel track holds its new results until its end, as the paper has it; else everything
    comes out at its time. None as the plan cancels what was sent for the same time and is not final.
    """

    plan: str | None
    method: str | None = None
    bins: Sequence[int] | Numbers | None = None
    share: bool = True
    background: bool = True
    order: Literal["time", "paper"] = "time"
    operator: str = ""  # whom it is for; all operators on the stream, if it does not say

    def renumbered(self, workers: int) -> Replan:
        """The same, where there are other workers now: a plan does not depend on them."""
        return self

    def __repr__(self) -> str:
        given = [] if self.method is None else [f"method={self.method!r}"]
        bins = self.bins.tolist() if isinstance(self.bins, np.ndarray) else self.bins
        given += [] if bins is None else [f"bins={brief(bins)}"]
        given += [f"{name}=False" for name in ("share", "background") if not getattr(self, name)]
        given += [f"order={self.order!r}"] if self.order != "time" else []
        return f"Replan({', '.join([repr(self.plan), *given])})"


def check_replan(replan: Replan, bins: int) -> Replan:
    """The replan in its normal form, as far as that can be told without the operator; ControlError if it has none."""
    if replan.plan is not None and type(replan.plan) is not str:
        raise ControlError(f"a plan is written as text, such as '(a b) c', not {brief(replan.plan)}")
    if replan.method is not None and replan.method not in METHODS:
        raise ControlError(
            f"there is no method {brief(replan.method)} to change a plan: there are {', '.join(METHODS)}"
        )
    for name in ("share", "background"):
        if type(getattr(replan, name)) is not bool:
            raise ControlError(f"{name}= is True or False, not {brief(getattr(replan, name))}")
    if replan.order not in ("time", "paper"):
        raise ControlError(f"order= is 'time' or 'paper', not {brief(replan.order)}")
    if replan.order == "paper" and replan.method != "parallel-track":
        raise ControlError("order='paper' is for parallel-track alone: other methods hold no results back")
    if replan.bins is None:
        return replan
    given: object = replan.bins
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise ControlError(f"bins= is a list of bins, not {brief(given)}")
    if not len(replan.bins):
        raise ControlError("bins= names no bin: leave it out for all of them")
    return replace(replan, bins=np.unique(all_within(replan.bins, bins, "bin")))


class PlanSpace(ABC):
    """What plans of an operator are."""

    first: str  # the plan with which it begins

    @abstractmethod
    def check(self, replan: Replan) -> Replan:
        """The replan with its plan in normal form and a method; ControlError if it cannot be."""


class NoPlans(PlanSpace):
    """Of operators that have no plan."""

    first = ""

    def check(self, replan: Replan) -> NoReturn:
        raise ControlError(
            f"{replan!r} is for an operator that has plans: window_join or opaque. Give those a control stream of "
            "their own, which the others do not share"
        )


class KnownPlans:
    """By bin, which plan it is to have, as far as was heard on the control stream. `trusts`: updates were accepted by
    an earlier life and are sent again before anything is heard; they are not refused for what is not known yet.
    `alone`: there is one worker, which so knows of everything that was sent.

    Costs: a time that becomes final O(bins x its replans); the rest O(what was said).
    """

    def __init__(self, space: PlanSpace, bins: int, trusts: bool = False, alone: bool = True) -> None:
        self.space = space
        self._alone = alone
        self.trusts = trusts
        self._bins = bins
        self._past: dict[int, str] = {}  # bins that have another than the first, before the first of _since
        self._since: dict[int, dict[int, str]] = {}  # by time, in their order, bins that are to have another from then
        self._pending: dict[int, list[Replan]] = {}  # by time
        self._sent: list[Replan] = []  # from this worker, and not heard yet
        self._mine: list[Replan] = []  # from this worker, heard and not final

    def checked(self, replan: Replan, drives: bool = False) -> Replan:
        """The replan in normal form. ControlError if it makes no sense for this operator, or if its bins are known to
        have that plan and to get no other: whoever sends it is mistaken about what runs.

        With several workers that is not known here: another may have sent another plan for an earlier time, of which
        nothing was heard yet, and a program must not fail for that now and then. `drives`: whoever asks is the one who
        sends replans (a controller), or else goes by what was heard.
        """
        checked = self.space.check(replan)
        if checked.plan is None or self.trusts or not (self._alone or drives):
            return checked
        if all(self._heard_of(bin) == {checked.plan} for bin in self._bins_of(checked)):
            which = "the operator has" if checked.bins is None else "these bins have"
            raise ControlError(f"{which} the plan {checked.plan!r} already: a replan changes it")
        return checked

    def _heard_of(self, bin: int) -> set[str]:
        """The plans that a bin has or, as far as was heard, will have."""
        plans = {self._latest(bin)}
        for replans in (*self._pending.values(), self._sent):
            plans |= {r.plan for r in replans if r.plan is not None and bin in self._bins_of(r)}
        return plans

    def _bins_of(self, replan: Replan) -> Sequence[int] | Numbers | range:
        return range(self._bins) if replan.bins is None else replan.bins

    def sent(self, replans: Sequence[Replan]) -> None:
        """This worker sends checked replans, which will be heard later."""
        self._sent += replans

    def accept(self, time: int, replans: Sequence[Replan]) -> None:
        """Takes checked replans for a time that is not final."""
        if replans:
            self._pending.setdefault(time, []).extend(replans)
            self._mine += [replan for replan in self._sent if any(replan is heard for heard in replans)]
            self._sent = [replan for replan in self._sent if not any(replan is heard for heard in replans)]

    def finalise(self, time: int) -> list[tuple[Numbers, Replan]]:
        """What all replans for a time say together: bins with what they are to do. Of several for a bin the greatest
        text wins, on all workers alike; one that cancels wins over all."""
        replans = sorted(self._pending.pop(time, ()), key=_rank)
        chosen = np.full(self._bins, -1, np.int64)
        for number, replan in enumerate(replans):
            chosen[np.asarray(self._bins_of(replan))] = number if replan.plan is not None else -1
        result = []
        for number, replan in enumerate(replans):
            bins = np.flatnonzero(chosen == number)
            if len(bins) and replan.plan is not None:
                self._tell_if_nothing_changes(time, bins, replan)
                self._since.setdefault(time, {}).update(dict.fromkeys(bins.tolist(), replan.plan))
                result.append((bins, replan))
        return result

    def _tell_if_nothing_changes(self, time: int, bins: Numbers, replan: Replan) -> None:
        """Now it is known on all workers; the one that sent it says so. It does no harm."""
        if any(replan is mine for mine in self._mine):
            self._mine = [mine for mine in self._mine if mine is not replan]
            if all(self._latest(bin) == replan.plan for bin in bins.tolist()):
                print(f"{replan!r} at {time} changes nothing: its bins have that plan", file=sys.stderr, flush=True)

    def retire(self, is_past: Callable[[int], bool]) -> None:
        """Nobody can ask any more what was so before times that are past."""
        for time in [time for time in self._since if is_past(time)]:
            self._past.update(self._since.pop(time))

    def _latest(self, bin: int) -> str:
        for changes in reversed(self._since.values()):
            if bin in changes:
                return changes[bin]
        return self._past.get(bin, self.space.first)

    @property
    def plans(self) -> list[str]:
        """By bin, its plan as far as that is final. A bin may still be on its way there."""
        return [self._latest(bin) for bin in range(self._bins)]

    def changed_at(self, time: int) -> dict[int, str]:
        """By bin that has another plan than the first, at a time that is final: what a snapshot needs."""
        changed = dict(self._past)
        for at, changes in self._since.items():
            changed.update(changes if at <= time else {})
        return changed

    def as_plain(self) -> list[object]:
        """What is final, for a worker that joins."""
        return [dict(self._past), [[time, dict(changes)] for time, changes in self._since.items()]]

    def take_over(self, past: Mapping[int, str], since: Iterable[tuple[int, Mapping[int, str]]]) -> None:
        """Takes over what another worker knows."""
        self._past, self._since = dict(past), {time: dict(changes) for time, changes in since}

    def not_alone(self) -> None:
        """Workers have joined."""
        self._alone = False

    def restore(self, changed: Mapping[int, str]) -> None:
        """What was so when a snapshot was taken."""
        self._past = dict(changed)


def _rank(replan: Replan) -> tuple[bool, str, str, bool, bool, str]:
    return (
        replan.plan is None, replan.plan or "", replan.method or "", replan.share, replan.background, replan.order,
    )  # fmt: skip
