"""F and S put together: the two operators, the probe between them, and what they share (sections 3.4 and 4.3.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow import Probe, Stream
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context, Keeps, OperatorBuilder
from dataflow.members.roster import Roster
from dataflow.operators.failing import CheckedStream
from dataflow.state.durable import DurableStore
from dataflow.state.kept import KeptState
from dataflow.state.looking import StoreLookup
from dataflow.state.store import B, Store
from dataflow.state.values import Key, Record
from dataflow.time.order import Time
from megaphone.control.arranging import Arrangement, Table, dealt_out
from megaphone.control.configuration import Configurations
from megaphone.control.replans import KnownPlans, NoPlans, PlanSpace
from megaphone.control.tree import BinTree, prefix_of
from megaphone.control.updates import Update
from megaphone.errors import ControlError
from megaphone.keys.keyspace import KeySpace
from megaphone.load.news import BinLoads
from megaphone.load.statistics import Statistics, collect
from megaphone.migration.moving import BinMover
from megaphone.router.kept_placement import KeptPlacement
from megaphone.router.routing import ControlPact, Routed, RoutedState, Router, Shared

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from dataflow.run.meters import Meter

    Out = TypeVar("Out", covariant=True, default=Any)  # what comes out of an operator
else:
    from typing import TypeVar

    Out = TypeVar("Out", covariant=True)

SomeKeys: TypeAlias = KeySpace[Any]  # of rows or of columns: a handle does not care
SomeConfigurations: TypeAlias = Configurations[Any]
SomeStore: TypeAlias = Store[Any]
INTERVAL = 0.25  # seconds between reports of statistics, unless the operator is told otherwise


class Handle:
    """What a controller may know of an operator on this worker."""

    def __init__(
        self,
        bins: int,
        roster: Roster,
        keys: SomeKeys,
        configurations: SomeConfigurations,
        probe: Probe,
        statistics: Statistics,
        store: SomeStore,
        control: Stream[Update],
        plans: KnownPlans,
        name: str,
    ) -> None:
        self.name = name
        self.bins = bins  # the finest
        self._roster = roster
        self.keys = keys
        self.control = control  # where updates come from
        self.plans = plans  # of bins, as far as was heard
        self.statistics = statistics
        self.store = store  # what this worker holds, of rows or of columns
        self._configurations = configurations
        self._probe = probe

    @property
    def peers(self) -> int:
        """One more than the greatest number of a worker."""
        return self._roster.span

    @property
    def members(self) -> Sequence[int]:
        """The workers that can have bins."""
        return [worker for worker in self._roster.members if worker not in self._roster.leaving]

    @property
    def configuration(self) -> Table:
        """Where each of the finest bins is, as far as that is final."""
        return self._configurations.latest

    @property
    def tree(self) -> BinTree:
        """The bins that there are, as far as that is final."""
        return self._configurations.latest_tree

    @property
    def pinned(self) -> dict[Key, int]:
        """By key that lives apart from its bin, its worker, as far as that is final."""
        overrides = self._configurations.latest_overrides
        return {} if overrides is None else overrides.as_dict()

    @property
    def meter(self) -> Meter:
        """Where what happens is noted, for those who look."""
        return self.control.scope.dataflow.pump.meter

    def now(self) -> float:
        """The worker's clock, in seconds."""
        return self.control.scope.dataflow.pump.clock.now()

    def passed(self, time: Time) -> bool:
        """Whether everything at `time` is done, the migration at that time included."""
        return self._probe.passed(time)


class ControlDoor:
    """Updates from outside the program (`dataflow.build.hooks.Control`): onto the operator's control stream.

    Operators that share a control stream share its updates, as ever.
    """

    def __init__(self, name: str, control: Stream[Update], pact: ControlPact) -> None:
        self._name = name
        self._control = control
        self._pact = pact

    def accept(self, update: object, at: Time) -> None:
        """Sends an update, checked, at a time."""
        checked = self._pact.checked(update)
        feed = self._control.scope.dataflow.hooks.feeds.get(self._control.source)
        if feed is None:
            raise ControlError(
                f"{self._name}: its control stream is not that of an input, so only the program itself can send on it"
            )
        feed.send([checked], at)


class BinPlacement:
    """Where an operator's bins are (`dataflow.build.hooks.Placement`)."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def members(self) -> Sequence[int]:
        """Every worker that takes part."""
        return self._handle.members

    def workers(self) -> Table:
        """By finest bin, its worker, as far as that is final."""
        return self._handle.configuration

    def groups(self) -> NDArray[np.int64]:
        """By bin, how many finest ones it has."""
        return self._handle.tree.counts

    def group_name(self, shard: int) -> str:
        """The prefix of the bin that has a finest one."""
        return prefix_of(self._handle.tree.run_at(shard), self._handle.bins)


class Migratable(Stream[Out]):
    """The output of an operator that can be migrated, and the handle that a controller wants."""

    def __init__(self, stream: Stream[Out], handle: Handle) -> None:
        super().__init__(stream.scope, stream.source)
        self.handle = handle


class CheckedMigratable(Migratable[Out]):
    """The same, of a fold that may fail. `errors`: ((key, value), text) of the pairs at which it raised."""

    def __init__(self, stream: CheckedStream[Out], handle: Handle) -> None:
        super().__init__(stream, handle)
        self.errors = stream.errors


@dataclass(frozen=True)
class Assembly(Generic[B]):
    """What differs between rows and columns: the store of bins, and how F and S are made from what they share."""

    store: Store[B]
    router: Callable[[Context, Shared[B], Arrangement], Router[B]]
    host: Callable[[Context, Shared[B]], Callable[[], None]]
    keys: KeySpace[Any]  # what can be pinned
    reports: bool  # whether S tells statistics
    plans: PlanSpace = field(default_factory=NoPlans)  # where bins have some
    first: int | None = None  # bins that there are at first; None: all are as fine as can be


def assemble(
    control: Stream[Update], streams: Sequence[Stream[Record]], bins: int, name: str, parts: Assembly[B]
) -> Migratable[Record]:
    """Builds F and S."""
    scope = streams[0].scope
    if not scope.domain.total:
        raise ConstructionError(f"{name}: timestamps must be totally ordered, and those of {scope.title} are not")
    peers = scope.peers
    probe: list[Probe] = []
    plans = KnownPlans(parts.plans, bins, trusts=scope.dataflow.recovers, alone=peers == 1)
    roster = scope.dataflow.pump.roster
    members = scope.dataflow.history.latest
    pact = ControlPact(name, bins, roster, parts.keys, plans, scope.dataflow.hooks)
    shared = Shared(parts.store, plans, lambda time: not probe[0].frontier.less_than(time))
    routers: list[Router[B]] = []
    statistics = Statistics(bins)
    statistics.kept = parts.reports
    placed = KeptPlacement(lambda: routers[0].configurations, plans, statistics, roster, peers)
    shared.kept = KeptState(name, parts.store, placed, scope.dataflow)

    def make_router(context: Context) -> Callable[[], None]:
        routers.append(parts.router(context, shared, dealt_out(BinTree.even(bins, parts.first or bins), members)))
        shared.activate_router = context.activate
        return routers[0].step

    *records, moving = _router(control, streams, name, pact).build(make_router, frontier=True, keeps=Keeps.SHARE)
    host = OperatorBuilder(scope, f"{name} S")
    for stream in records:
        host.add_input(stream, Routed())
    host.add_input(moving, RoutedState())
    host.add_output(initial=scope.dataflow.recovers, entry=False)
    host.add_output()

    def make_host(context: Context) -> Callable[[], None]:
        arrivals = context.inputs[len(records)]
        shared.on_its_way = lambda: arrivals.on_its_way
        arrivals.on_taken = shared.activate_router
        context.follow()
        return parts.host(context, shared)

    shared.kept.watchers.append(lambda: shared.activate_router())
    out, reports = host.build(make_host, frontier=True, keeps=Keeps.SHARE)
    collect(reports, statistics, name)
    probe.append(out.probe())
    scope.dataflow.watch(out.source, shared.activate_router)  # the frontier of S is no input of F
    handle = Handle(
        bins, roster, parts.keys, routers[0].configurations, probe[0], statistics, parts.store, control, plans, name
    )
    made = Migratable(out, handle)
    _register(name, made, ControlDoor(name, control, pact))
    return made


def _register(name: str, made: Migratable[Record], door: ControlDoor) -> None:
    """Has others reach the operator's state and steer it: see `dataflow.build.hooks`."""
    from megaphone.migration.steering import OutsideSteering  # whose controller knows what is built here

    handle = made.handle
    made.scope.dataflow.hooks.register(
        name,
        DurableStore(handle.store),
        control=door,
        placement=BinPlacement(handle),
        lookup=StoreLookup(handle.store, lambda key: int(handle.keys.bins_of([key])[0])),
        steering=OutsideSteering(name, made),
        loads=BinLoads(handle),
        mover=BinMover(name, made, made.scope.dataflow),
    )


def _router(
    control: Stream[Update], streams: Sequence[Stream[Record]], name: str, pact: ControlPact
) -> OperatorBuilder:
    """F, declared: data inputs and control; an output for the records of each data input, and one for state."""
    builder = OperatorBuilder(streams[0].scope, f"{name} F")
    for stream in streams:
        builder.add_input(stream)
    last = builder.add_input(control, pact)
    for port in range(len(streams)):
        builder.add_output({port: None})
    builder.add_output({last: None})
    return builder
