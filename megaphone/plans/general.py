"""Opaque plans, and how a bin gets from one to the next: GMS, GPT, GHM (section 4). Pure.

An opaque plan is a function of a time, what arrived at it, and a state of its own. All that is known of it is its
*reach*: its state at t follows from the records at times from t - reach to t. All plans of an operator give the same
results. A window at the sources has its length as its reach; a further window on what comes out of a join adds to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from dataflow.run.inside import Build, Inside
from dataflow.state.stores.weighing import weigh
from dataflow.state.values import Key, Record, State, Value
from megaphone.plans.bins import Arrivals, Asked, BinMaker, Entries, PlanBin
from megaphone.plans.door import PlanView
from megaphone.plans.query import KeyFunction, checked_key, checked_streams, key_by
from megaphone.plans.trees import BadPlan

GENERAL = ("gms", "gpt", "ghm")
OpaquePlan: TypeAlias = Callable[[int, Arrivals, dict[Key, State]], Iterable[Record]]
"""(time, records by stream, the plan's own state): the results at that time. The state is a dictionary of plain data,
empty at first."""
_LOOKED_AT = 4  # entries that are weighed


@dataclass(frozen=True)
class Built:
    """A plan that is a function from streams, by name, to a stream: it builds operators, as in any dataflow.

    Each bin runs it in a dataflow of its own. That does not travel: where a bin arrives, the records of the last
    `reach`, which travel with it, make the same state again.
    """

    build: Build

    def __call__(self, time: int, arrivals: Arrivals, state: dict[Key, State]) -> Iterable[Record]:
        raise AssertionError("a bin runs what was built")


@dataclass(frozen=True)
class Opaque:
    """Several plans, by name, that give the same results of the same streams.

    `reach`: the state of each plan at t follows from the records at times from t - reach to t. `on`: a function from a
    record to its key, or the position of a field: keys are grouped into bins, and a plan is called with the records of
    one bin. Without it there is one bin.
    """

    streams: tuple[str, ...]
    plans: Mapping[str, OpaquePlan]
    reach: int
    on: KeyFunction | int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "streams", checked_streams(self.streams, 1))
        if type(self.reach) is not int or self.reach < 1:
            raise BadPlan(f"a reach is a positive integer, in units of the dataflow's time, not {self.reach!r}")
        checked_key(self.on)
        if not isinstance(self.plans, Mapping):
            raise BadPlan(f"plans are functions by name, {{'one': function}}, not {self.plans!r}")
        if not self.plans:
            raise BadPlan("there is no plan: give one at least, by name")
        for name, plan in self.plans.items():
            if type(name) is not str or not callable(plan):
                raise BadPlan(f"plans are functions by name, not {plan!r} by {name!r}")
            _check_plan(name, plan)

    @property
    def key(self) -> KeyFunction | None:
        """From a record to its key, if there is one."""
        return key_by(self.on)


def _check_plan(name: str, plan: object) -> None:
    """BadPlan unless a plan can be called as plans are."""
    wants, function, arguments = "a time, what arrived and a state", plan, 3
    if isinstance(plan, Built):
        wants, function, arguments = "streams by name", plan.build, 1
    if not callable(function):
        raise BadPlan(f"the plan {name!r} is built by {function!r}, which cannot be called")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function of the interpreter's own, of which nothing is known
        return
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        raise BadPlan(f"the plan {name!r} cannot be called with {wants}: {error}") from None


@dataclass(slots=True)
class Switching:
    """The way to another plan. `fed`: the new plan has had everything before this time."""

    plan: str
    method: str
    time: int
    fed: int
    state: dict[Key, State] = field(default_factory=dict)


class OpaqueBin(PlanBin):
    """A bin of opaque plans. It keeps the records of the last `reach`, by time."""

    def __init__(self, opaque: Opaque, plan: str) -> None:
        super().__init__()
        self.opaque = opaque
        self.name = plan
        self.state: dict[Key, State] = {}
        self.history: dict[int, Arrivals] = {}  # invariant: in the order of time
        self.switching: Switching | None = None
        self._inside: dict[int, Inside] = {}  # what was built, by the state of which it is in the place

    @property
    def _migrates(self) -> bool:
        return self.switching is not None

    def _end(self, time: int) -> list[Record]:
        self._forget(time)
        way = self.switching
        if way is not None and (not self.history or (way.method == "gpt" and time >= way.time + self.opaque.reach)):
            self._switch()
        return []

    def _switch(self) -> None:
        assert self.switching is not None
        self._inside.pop(id(self.state), None)  # with the state goes its number, which another one may get
        self.name, self.state, self.switching = self.switching.plan, self.switching.state, None

    def _replan(self, asked: Asked, time: int) -> None:
        if asked.plan == self.name:
            return
        self._forget(time)
        reach = self.opaque.reach
        self.switching = Switching(asked.plan, asked.method, time, time if asked.method == "gpt" else time - reach)
        if asked.method == "gms":
            self._feed(self.switching, time)
        if asked.method == "gms" or not self.history:
            self._switch()

    def _apply(self, time: int, arrivals: Arrivals) -> list[Record]:
        some = {stream: records for stream, records in arrivals.items() if records}
        if not some:
            return []
        self.history[time] = some
        results = self._call(self.name, time, self.state)
        if self.switching is not None and self.switching.method == "gpt":
            self._feed(self.switching, time + 1)
        return results

    def _call(self, plan: str, time: int, state: dict[Key, State]) -> list[Record]:
        held, made = self.history[time], self.opaque.plans[plan]
        if isinstance(made, Built):
            return self._running(plan, made, time, state).at(time, held)
        results = made(time, {s: held.get(s, []) for s in self.opaque.streams}, state)
        if not isinstance(results, Iterable):
            raise TypeError(f"the plan {plan!r} returns its results, in a list or with yield, not {results!r}")
        return [*results]

    def _running(self, plan: str, made: Built, time: int, state: dict[Key, State]) -> Inside:
        """The dataflow that was built for a state. If there is none yet, or the bin came from elsewhere: one that has
        had all that is within reach."""
        if id(state) not in self._inside:
            inside = Inside(f"plan {plan!r}", self.opaque.streams, made.build)
            for earlier, held in self.history.items():
                if earlier < time:
                    inside.at(earlier, held)
            sides = (self.state, self.switching.state) if self.switching is not None else (self.state,)
            self._inside = {key: each for key, each in self._inside.items() if key in map(id, sides)}
            self._inside[id(state)] = inside
        return self._inside[id(state)]

    def _feed(self, switching: Switching, until: int, budget: int | None = None) -> None:
        """Gives the new plan what it has not had, in the order of time, and discards its results. Records that have
        expired meanwhile make no difference to it."""
        for time in [time for time in self.history if switching.fed <= time < until]:
            if budget is not None and budget <= 0:
                return
            self._call(switching.plan, time, switching.state)
            switching.fed = time + 1
            if budget is not None:
                budget -= sum(map(len, self.history[time].values()))
        switching.fed = max(switching.fed, until)

    def _work(self, budget: int) -> None:
        """GHM: the new plan takes what it has not had. When nothing is left it takes over, between two times."""
        if self.switching is not None and self.switching.method == "ghm":
            self._feed(self.switching, self.last + 1, budget)
            if self.switching.fed > self.last:
                self._switch()

    def _forget(self, time: int) -> None:
        """Forgets records that are out of reach; and with the last one the states, which say nothing any more."""
        for earlier in [earlier for earlier in self.history if earlier < time - self.opaque.reach]:
            del self.history[earlier]
        if not self.history:
            self._inside.clear()
            self.state = {}
            if self.switching is not None:
                self.switching.state = {}

    def _wakes(self) -> int | None:
        times = [next(reversed(self.history)) + self.opaque.reach + 1] if self.history else []
        if self.switching is not None and self.switching.method == "gpt":
            times.append(self.switching.time + self.opaque.reach)
        return min(times, default=None)

    @property
    def can_work(self) -> bool:
        return self.switching is not None and self.switching.method == "ghm"

    @property
    def is_empty(self) -> bool:
        return not (self.queue or self.switching or self.history)

    @property
    def plan(self) -> PlanView:
        if self.switching is None:
            return PlanView(self.name, queued=self._plans())
        return PlanView(self.name, self.switching.plan, self.switching.method, self.switching.time, self._plans())

    def entries(self) -> Iterator[tuple[tuple[Key, ...], Value]]:
        way = self.switching
        described = None if way is None else [way.plan, way.method, way.time, way.fed]
        yield ("bin",), [self.last, [[*asked] for asked in self.queue], self.name, described]
        for time, arrivals in self.history.items():
            for stream, records in arrivals.items():
                yield ("record", time, stream), records
        for side, state in enumerate([self.state] if way is None else [self.state, way.state]):
            for key, value in state.items():
                yield ("state", side, key), value

    def weight(self) -> int:
        held = [*islice(reversed(self.history.values()), _LOOKED_AT)]
        each = sum(map(weigh, held)) / len(held) if held else 0
        return int(
            64 + len(self.history) * each + weigh(self.state) + (weigh(self.switching.state) if self.switching else 0)
        )

    def view(self) -> Mapping[Key, State]:
        """By key of the running plan's own state, what it has there."""
        return dict(self.state)


class OpaqueBins(BinMaker):
    """Makes bins of opaque plans."""

    def __init__(self, opaque: Opaque, first: str) -> None:
        self.opaque = opaque
        self.first = first
        self.streams = opaque.streams

    def new(self, number: int, plan: str) -> OpaqueBin:
        return OpaqueBin(self.opaque, plan)

    def arrived(self, number: int, entries: Entries) -> OpaqueBin:
        bin = OpaqueBin(self.opaque, self.first)
        bin.last, queue, bin.name, described = entries.pop(("bin",))
        bin.queue = [Asked(*asked) for asked in queue]
        bin.switching = None if described is None else Switching(*described)
        found: dict[int, dict[str, list[Record]]] = {}
        for (kind, *where), value in entries.items():
            if kind == "record":
                found.setdefault(where[0], {})[where[1]] = value
            elif where[0] == 0:
                bin.state[where[1]] = value
            elif bin.switching is not None:
                bin.switching.state[where[1]] = value
        bin.history = {time: found[time] for time in sorted(found)}
        for plan in (bin.name, *([] if bin.switching is None else [bin.switching.plan])):
            if plan not in self.opaque.plans:
                raise ValueError(f"a bin with the plan {plan!r}, which there is not")
        return bin

    def describe(self) -> Mapping[str, str]:
        streams, reach = " ".join(self.streams), str(self.opaque.reach)
        return {"store": "rows", "plans": "opaque", "streams": streams, "reach": reach}
