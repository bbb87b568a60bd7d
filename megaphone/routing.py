"""F: routes records by the configuration at their time, and starts migrations (section 3.4).

F has two inputs, data and control, and two outputs to S, data and state. It keeps data back while the configuration
at its time is not certain. For each time at which bins move it holds a capability, from when it hears of that until
it has sent its own share of those bins; it sends them when the output frontier of S shows nothing before that time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataflow.lowlevel import Broadcast, Capability, Context, InputPort, OutputPort, Pact
from dataflow.order import Time
from megaphone.bins import RowBins
from megaphone.configuration import Configurations, Migration, Table
from megaphone.control import check_update

DATA, CONTROL = 0, 1  # inputs of F
RECORDS, STATE = 0, 1  # outputs of F, inputs of S


class ControlPact(Broadcast):
    """Every worker gets every update; one that makes no sense is refused where it is sent, and goes to nobody."""

    name = "control"
    validates = True

    def __init__(self, bins: int, peers: int) -> None:
        self._bins = bins
        self._peers = peers

    def split(self, batch: Any, peers: int) -> Sequence[Any]:
        updates = [check_update(update, self._bins, self._peers) for update in batch]
        return super().split(updates, peers)


class Parts:
    """A batch that has been split already: one part per worker."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[list[Any]]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))


class Routed(Pact):
    """Each part goes to its worker."""

    name = "routed"
    validates = True  # parts must be taken apart, even for one worker

    def split(self, batch: Parts, peers: int) -> Sequence[Any]:
        return batch.parts


@dataclass
class Shared:
    """What F and S of one operator on one worker have in common (section 4.2: a shared pointer to the bins)."""

    bins: RowBins
    nothing_before: Callable[[Time], bool]  # whether S's output frontier shows nothing before a time
    state_changed: Callable[[], None] = field(default=lambda: None)  # tells S that F has taken a bin
    activate_router: Callable[[], None] = field(default=lambda: None)  # has F look at S's output frontier


class Router:
    """The step of F."""

    def __init__(
        self, context: Context, shared: Shared, initial: Table, ports: int, bin_of: Sequence[Callable[[Any], int]]
    ) -> None:
        self._context = context
        self._shared = shared
        self._bin_of = bin_of  # one per data input
        self._ports = ports
        self._data: Sequence[InputPort] = context.inputs[:ports]
        self._control: InputPort = context.inputs[ports]
        self._records: OutputPort = context.outputs[RECORDS]
        self._state: OutputPort = context.outputs[STATE]
        self._configurations = Configurations(initial)
        self._held: dict[Time, Capability] = {}  # for the state output, by configuration time
        self._due: deque[Migration] = deque()  # final, and not yet sent
        self._uncertain: dict[Time, tuple[Capability, list[tuple[int, list[Any]]]]] = {}  # kept back, by time

    def step(self) -> None:
        """Control and state come before data."""
        self._accept_updates()
        self._install_final_configurations()
        self._start_due_migrations()
        self._route_certain_records()
        self._retire_configurations()

    def _accept_updates(self) -> None:
        for message, updates in self._control:
            if self._configurations.accept(message.time, updates):
                self._held[message.time] = message.retain(STATE)

    def _install_final_configurations(self) -> None:
        self._due.extend(self._configurations.finalise(lambda time: not self._control.could_see(time)))

    def _start_due_migrations(self) -> None:
        while self._due and self._shared.nothing_before(self._due[0].time):
            migration = self._due.popleft()
            capability = self._held.pop(migration.time)
            self._send_bins(migration, capability)
            capability.drop()

    def _send_bins(self, migration: Migration, capability: Capability) -> None:
        """Uninstalls every bin that leaves this worker, and sends it at the time of its migration."""
        parts: list[list[Any]] = [[] for _ in range(self._context.peers)]
        for number, origin, destination in migration.moves:
            if origin == self._context.worker:
                payload = self._shared.bins.take(number)
                if payload is not None:
                    parts[destination].append((number, payload))
        if any(parts):
            self._state.give(capability, Parts(parts))
            self._shared.state_changed()

    def _route_certain_records(self) -> None:
        for port, input in enumerate(self._data):
            for message, batch in input:
                if self._control.could_see(message.time):
                    self._keep_back(message, port, batch)
                else:
                    self._route(message, message.time, port, batch)
        for time in sorted(self._uncertain):
            if self._control.could_see(time):
                break
            capability, batches = self._uncertain.pop(time)
            for port, batch in batches:
                self._route(capability, time, port, batch)
            capability.drop()

    def _keep_back(self, message: Any, port: int, batch: list[Any]) -> None:
        if message.time not in self._uncertain:
            self._uncertain[message.time] = (message.retain(RECORDS), [])
        self._uncertain[message.time][1].append((port, batch))

    def _route(self, capability: Any, time: Time, port: int, batch: list[Any]) -> None:
        table, bin_of = self._configurations.at(time), self._bin_of[port]
        parts: list[list[Any]] = [[] for _ in range(self._context.peers)]
        for record in batch:
            number = bin_of(record)
            parts[table[number]].append((number, port, record))
        self._records.give(capability, Parts(parts))

    def _retire_configurations(self) -> None:
        """No record before a configuration's time can come any more: what it replaced is not needed."""
        first = min(self._uncertain, default=None)

        def is_past(time: Time) -> bool:
            if first is not None and first < time:
                return False
            return not any(port.frontier.less_than(time) for port in self._data)

        if self._configurations.size > 1:
            self._configurations.retire(is_past)

    @property
    def configurations(self) -> Configurations:
        """The history that is still needed."""
        return self._configurations
