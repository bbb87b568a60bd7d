"""`unary`, `binary` and `state_machine`: stateful operators that can be migrated (Listing 1), each an F and an S."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dataflow import Probe, Stream
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context, OperatorBuilder
from dataflow.order import Time
from megaphone.bins import RowBins
from megaphone.configuration import Configurations
from megaphone.hashing import bin_of, shift_of
from megaphone.routing import ControlPact, Routed, Router, Shared
from megaphone.state import Apply, Host, Postponer


def unary(
    control: Stream[Any],
    stream: Stream[Any],
    *,
    key: Callable[[Any], Any],
    fold: Callable[[Time, list[Any], Any, Postponer], Iterable[Any]],
    bins: int = 256,
    state: Callable[[], Any] = dict,
    name: str = "unary",
) -> Migratable:
    """A stateful operator whose bins of keys move as the control stream says.

    At each time, in the order of times, `fold(time, records, state, notificator)` is called for each bin that has
    records, and everything it yields comes out at that time. `state` is the bin's, made by the function `state` and
    shared by all keys of the bin: keep things by key. `notificator.notify_at(later, record)` has a record presented
    again.
    """

    def apply(time: Time, number: int, records: list[list[Any]], state: Any, postponer: Postponer) -> Iterable[Any]:
        return fold(time, records[0], state, postponer)

    return _stateful(control, (stream,), (key,), bins, state, apply, name)


def binary(
    control: Stream[Any],
    left: Stream[Any],
    right: Stream[Any],
    *,
    key: Callable[[Any], Any],
    right_key: Callable[[Any], Any] | None = None,
    fold: Callable[..., Iterable[Any]],
    bins: int = 256,
    state: Callable[[], Any] = dict,
    name: str = "binary",
) -> Migratable:
    """The same with two inputs, in the order of their times: `fold(time, left, right, state, notificator,
    notificator2)`.

    `notificator` presents records as left ones, `notificator2` as right ones.
    """

    def apply(time: Time, number: int, records: list[list[Any]], state: Any, postponer: Postponer) -> Iterable[Any]:
        return fold(time, records[0], records[1], state, postponer, _Right(postponer))

    return _stateful(control, (left, right), (key, right_key or key), bins, state, apply, name)


def state_machine(
    control: Stream[Any],
    stream: Stream[Any],
    *,
    fold: Callable[[Any, Any, Any], tuple[Any, Iterable[Any]]],
    bins: int = 256,
    name: str = "state_machine",
) -> Migratable:
    """State by key, over a stream of (key, value) pairs: `fold(key, value, state)` returns the new state and what
    comes out.

    A key's first state is None; a key whose new state is None is forgotten. The values of a key at one time come in no
    particular order.
    """

    def apply(time: Time, number: int, records: list[list[Any]], states: Any, _: Postponer) -> Iterable[Any]:
        results: list[Any] = []
        for key, value in records[0]:
            try:
                new, out = fold(key, value, states.get(key))
            except Exception as error:
                error.add_note(f"for the key {key!r}")
                raise
            if new is None:
                states.pop(key, None)
            else:
                states[key] = new
            results.extend(out)
        return results

    return _stateful(control, (stream,), (lambda pair: pair[0],), bins, dict, apply, name)


class Handle:
    """What a controller may know of an operator on this worker."""

    def __init__(self, bins: int, peers: int, configurations: Configurations, probe: Probe) -> None:
        self.bins = bins
        self.peers = peers
        self._configurations = configurations
        self._probe = probe

    @property
    def configuration(self) -> tuple[int, ...]:
        """Where each bin is, as far as that is final."""
        return self._configurations.latest

    def passed(self, time: Time) -> bool:
        """Whether everything at `time` is done, the migration at that time included."""
        return self._probe.passed(time)


class Migratable(Stream[Any]):
    """The output of an operator that can be migrated."""

    handle: Handle


class _Right:
    """The notificator of the second input."""

    __slots__ = ("_postponer",)

    def __init__(self, postponer: Postponer) -> None:
        self._postponer = postponer

    def notify_at(self, time: Time, record: Any) -> None:
        """Presents `record` to the fold again as a right one, at a later time."""
        self._postponer.notify_at(time, record, 1)


def _stateful(
    control: Stream[Any],
    streams: Sequence[Stream[Any]],
    keys: Sequence[Callable[[Any], Any]],
    bins: int,
    state: Callable[[], Any],
    apply: Apply,
    name: str,
) -> Migratable:
    """F and S, and the probe between them (section 4.3.1)."""
    scope = streams[0].scope
    if not scope.domain.total:
        raise ConstructionError(f"{name}: timestamps must be totally ordered, and those of {scope.title} are not")
    for function, role in (*((key, "key") for key in keys), (state, "state (a function that makes one)")):
        if not callable(function):
            raise ConstructionError(f"{name} needs a function as its {role}, not {function!r}")
    shift, peers = shift_of(bins), scope.dataflow.worker.peers
    probe: list[Any] = []
    shared = Shared(RowBins(state), lambda time: not probe[0].frontier.less_than(time))
    initial = tuple(number % peers for number in range(bins))

    def bin_by(key: Callable[[Any], Any]) -> Callable[[Any], int]:
        return lambda record: bin_of(key(record), shift)

    router = OperatorBuilder(scope, f"{name} F")
    for stream in streams:
        router.add_input(stream)
    router.add_input(control, ControlPact(bins, peers))
    data = dict.fromkeys(range(len(streams)))
    router.add_output({**data, len(streams): None})
    router.add_output({**data, len(streams): None})

    routers: list[Router] = []

    def make_router(context: Context) -> Callable[[], None]:
        routers.append(Router(context, shared, initial, len(streams), [bin_by(key) for key in keys]))
        shared.activate_router = context.activate
        return routers[0].step

    records, moving = router.build(make_router, frontier=True)
    host = OperatorBuilder(scope, f"{name} S")
    host.add_input(records, Routed())
    host.add_input(moving, Routed())
    host.add_output()
    (out,) = host.build(lambda context: Host(context, shared, len(streams), apply).step, frontier=True)
    probe.append(out.probe())
    scope.dataflow.watch(out.source, shared.activate_router)  # S's frontier is no input of F: it must be told
    result = Migratable(scope, out.source)
    result.handle = Handle(bins, peers, routers[0].configurations, probe[0])
    return result
