"""F and S put together: the two operators, the probe between them, and what they share (sections 3.4 and 4.3.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from dataflow import Probe, Stream
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context, OperatorBuilder
from dataflow.state.store import B, Store
from dataflow.time.order import Time
from megaphone.control.configuration import Configurations, Table
from megaphone.keys.keyspace import KeySpace
from megaphone.load.statistics import Statistics, collect
from megaphone.router.routing import ControlPact, Routed, RoutedState, Router, Shared

INTERVAL = 0.25  # seconds between reports of statistics, unless the operator is told otherwise


class Handle:
    """What a controller may know of an operator on this worker."""

    def __init__(
        self,
        bins: int,
        peers: int,
        keys: KeySpace,
        configurations: Configurations,
        probe: Probe,
        statistics: Statistics,
        store: Store[Any],
        control: Stream[Any],
    ) -> None:
        self.bins = bins
        self.peers = peers
        self.keys = keys
        self.control = control  # where updates come from
        self.statistics = statistics
        self.store = store  # what this worker holds
        self._configurations = configurations
        self._probe = probe

    @property
    def configuration(self) -> Table:
        """Where each bin is, as far as that is final."""
        return self._configurations.latest

    @property
    def pinned(self) -> dict[Any, int]:
        """By key that lives apart from its bin, its worker, as far as that is final."""
        overrides = self._configurations.latest_overrides
        return {} if overrides is None else overrides.as_dict()

    def passed(self, time: Time) -> bool:
        """Whether everything at `time` is done, the migration at that time included."""
        return self._probe.passed(time)


class Migratable(Stream[Any]):
    """The output of an operator that can be migrated."""

    handle: Handle


@dataclass(frozen=True)
class Assembly(Generic[B]):
    """What differs between rows and columns: the store of bins, and how F and S are made from what they share."""

    store: Store[B]
    router: Callable[[Context, Shared[B], Sequence[int]], Router]
    host: Callable[[Context, Shared[B]], Callable[[], None]]
    keys: KeySpace  # what can be pinned


def assemble(
    control: Stream[Any], streams: Sequence[Stream[Any]], bins: int, name: str, parts: Assembly[B]
) -> Migratable:
    """Builds F and S."""
    scope = streams[0].scope
    if not scope.domain.total:
        raise ConstructionError(f"{name}: timestamps must be totally ordered, and those of {scope.title} are not")
    peers = scope.peers
    probe: list[Probe] = []
    shared = Shared(parts.store, lambda time: not probe[0].frontier.less_than(time))
    routers: list[Router] = []

    def make_router(context: Context) -> Callable[[], None]:
        routers.append(parts.router(context, shared, [number % peers for number in range(bins)]))
        shared.activate_router = context.activate
        return routers[0].step

    *records, moving = _router(control, streams, bins, name, parts.keys).build(make_router, frontier=True)
    host = OperatorBuilder(scope, f"{name} S")
    for stream in records:
        host.add_input(stream, Routed())
    host.add_input(moving, RoutedState())
    host.add_output()
    host.add_output()

    def make_host(context: Context) -> Callable[[], None]:
        arrivals = context.inputs[len(records)]
        shared.on_its_way = lambda: arrivals.on_its_way
        arrivals.on_taken = shared.activate_router
        return parts.host(context, shared)

    out, reports = host.build(make_host, frontier=True)
    statistics = Statistics(bins)
    collect(reports, statistics, name)
    probe.append(out.probe())
    scope.dataflow.watch(out.source, shared.activate_router)  # S's frontier is no input of F: it must be told
    result = Migratable(scope, out.source)
    result.handle = Handle(
        bins, peers, parts.keys, routers[0].configurations, probe[0], statistics, parts.store,
        control,
    )  # fmt: skip
    return result


def _router(
    control: Stream[Any], streams: Sequence[Stream[Any]], bins: int, name: str, keys: KeySpace
) -> OperatorBuilder:
    """F, declared: data inputs and control; an output for the records of each data input, and one for state."""
    builder = OperatorBuilder(streams[0].scope, f"{name} F")
    for stream in streams:
        builder.add_input(stream)
    last = builder.add_input(control, ControlPact(bins, streams[0].scope.peers, keys))
    for port in range(len(streams)):
        builder.add_output({port: None})
    builder.add_output({last: None})
    return builder
