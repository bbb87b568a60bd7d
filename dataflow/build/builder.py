"""Building operators: the n-ary builder, and `unary` and `binary` on top of it. All other operators stand on these.

An operator is made from a function `make(context)` that returns its step. The step is called when a message has
arrived, when an input frontier has moved (if the operator asked to watch it), or when it was activated:

    def make(context):
        totals = {}
        due = context.notificator()
        def step(input, output):
            for capability, batch in input:                 # take what has arrived
                if capability.time not in totals:
                    due.notify_at(capability.retain())      # be told when the time is complete
                totals[capability.time] = totals.get(capability.time, 0) + sum(batch)
            for capability in due:                          # it is: send, under the capability that was kept
                output.give(capability, [totals.pop(capability.time)])
        return step

    sums = unary(stream, "sum", make, frontier=True)
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.cuts import Keeps
from dataflow.build.notificator import Notificator
from dataflow.build.operator import Operator, Step
from dataflow.channels.pact import Pact, Pipeline
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError, ScopeMismatch
from dataflow.progress.graph import Source, Target
from dataflow.progress.paths import PathSummary, identity
from dataflow.run.advice import advise
from dataflow.run.clock import Clock
from dataflow.run.dataflow import writing
from dataflow.time.durations import Duration, seconds
from dataflow.time.order import TimeSummary
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream
    from dataflow.members.following import Follows

D = TypeVar("D")  # of records that come in
E = TypeVar("E")  # of those that go out
F = TypeVar("F")  # of those that come in at the second input

OnColumns: TypeAlias = Callable[[MessageCapability, Columns, OutputPort[E], Notificator], None]
OnRows: TypeAlias = Callable[[MessageCapability, list[D], OutputPort[E], Notificator], None]
OnNotify: TypeAlias = Callable[[Capability, OutputPort[E], Notificator], None]


class Context:
    """What an operator knows of its surroundings."""

    def __init__(self, operator: Operator, capabilities: Mapping[int, Capability]) -> None:
        self._operator = operator
        self._capabilities = dict(capabilities)

    @property
    def inputs(self) -> Sequence[InputPort]:
        """The inputs, in the order in which they were added."""
        return self._operator.inputs

    @property
    def outputs(self) -> Sequence[OutputPort]:
        """The outputs, in the order in which they were added."""
        return self._operator.outputs

    @property
    def worker(self) -> int:
        """The index of this worker."""
        return self._operator.dataflow.pump.index

    @property
    def peers(self) -> int:
        """The number of workers."""
        return self._operator.dataflow.pump.peers

    @property
    def name(self) -> str:
        """The operator's name and number."""
        return self._operator.label

    def capability(self, output: int = 0) -> Capability:
        """The capability with which an output that was declared `initial` starts. It must be dropped some time."""
        if output not in self._capabilities:
            raise ConstructionError(f"output {output} of {self.name} was not declared initial")
        return self._capabilities[output]

    def notificator(self) -> Notificator:
        """A notificator over the frontiers of all inputs."""
        return Notificator(self._operator.inputs)

    def stay(self, instead: str) -> None:
        """Says that the operator cannot follow the membership, and what could."""
        self._operator.instead = instead

    def follow(self, how: Follows | None = None, *, changes_times: bool = False, routes: bool = False) -> None:
        """Says that the operator follows the membership: workers may join and leave. `how`: what it hands over.
        `changes_times`: records leave at other times. `routes`: it says itself which worker gets what."""
        from dataflow.members.following import PLAIN

        self._operator.follows = PLAIN if how is None else how
        self._operator.changes_times = changes_times
        self._operator.routes = routes

    @property
    def span(self) -> int:
        """One more than the greatest number of a worker."""
        return self._operator.dataflow.pump.roster.span

    @property
    def clock(self) -> Clock:
        """The worker's clock."""
        return self._operator.dataflow.pump.clock

    def activate(self) -> None:
        """Has the step called soon, though nothing arrived. May be called from anywhere in the worker's thread."""
        self._operator.activate()

    def activate_when_idle(self) -> None:
        """Has the step called when the dataflow has nothing else to do: then `is_idle`. Messages and main go first, and
        between two such steps."""
        self._operator.dataflow.schedule_idle(self._operator.number)

    @property
    def is_idle(self) -> bool:
        """Whether the step was called because there was nothing else to do."""
        return self._operator.is_idle

    def activate_after(self, duration: float | Duration) -> None:
        """Has the step called after some time of the worker's clock: seconds, or a duration such as "250ms"."""

        clock = self.clock
        deadline = clock.now() + seconds(duration)

        async def sleep() -> None:
            await clock.sleep_until(deadline)
            self._operator.activate()

        self.spawn(sleep)

    def spawn(self, task: Callable[[], Awaitable[object]]) -> None:
        """Starts a task that lives no longer than the worker. What it raises gets a note that names the operator."""
        dataflow = self._operator.dataflow
        self._operator.has_tasks = True

        async def run() -> None:
            try:
                await task()
            except Exception as error:
                advise(error)
                error.add_note(dataflow.where(self._operator))
                raise

        dataflow.pump.spawn(run, self.name)

    def keep(self, size: int) -> None:
        """Counts data of that weight (see `dataflow.comm.flow.weigh`) that a task of this operator has taken to deal
        with later; a negative weight when it is done. While too much is kept, sources of the dataflow wait."""
        self._operator.kept += size
        self._operator.dataflow.keep(size)

    def enter_write(self) -> None:
        """Marks the current task, and those that it starts, as one that writes for a sink of this dataflow. It must not
        wait for room in this dataflow: there may be none before it has written."""
        writing.set(self._operator.dataflow)

    @property
    def dropped(self) -> bool:
        """Whether the dataflow has been dropped: nothing that is sent will arrive."""
        return self._operator.dataflow.dropped


class OperatorBuilder:
    """Declares inputs and outputs one by one, then `build`s the operator.

    By default every input is connected to every output and leaves times alone. An output may instead name the inputs it
    follows, with a summary for each: an increment for integer times, for example.
    """

    def __init__(self, scope: Scope, name: str) -> None:
        scope.require_open(name)
        self.scope = scope
        self.name = name
        self._inputs: list[tuple[Source | None, Pact, Scope]] = []
        self._outputs: list[tuple[Scope, Mapping[int, PathSummary] | None, bool]] = []
        self._entries: list[int] = []  # outputs on which records enter the dataflow
        self._built = False

    def add_input(self, stream: Stream[object], pact: Pact | None = None) -> int:
        """Adds an input that reads `stream`; returns its number."""
        stream.require_usable(self.name)
        if stream.scope is not self.scope:
            raise ScopeMismatch(
                f"{self.name} is in {self.scope.title}, and its input comes from {stream.scope.title}: "
                "bring a stream in with enter(scope) and out with leave()"
            )
        if pact is not None and not isinstance(pact, Pact):
            raise ConstructionError(f"{self.name} needs a Pact, such as Exchange(key), not {pact!r}")
        self._inputs.append((stream.source, pact or Pipeline(), stream.scope))
        return len(self._inputs) - 1

    def add_open_input(self) -> int:
        """Adds an input that is connected later (the end of a loop)."""
        self._inputs.append((None, Pipeline(), self.scope))
        return len(self._inputs) - 1

    def add_output(
        self,
        connections: Mapping[int, PathSummary | TimeSummary | None] | None = None,
        *,
        initial: bool = False,
        entry: bool = True,
        scope: Scope | None = None,
    ) -> int:
        """Adds an output; returns its number.

        `connections` maps inputs to summaries (a PathSummary, or a summary of the scope's innermost time; None for
        unchanged). `initial`: the operator starts with a capability, see Context.capability. If it is not an `entry`,
        that capability says nothing about what the outside may still send.
        """
        paths = None
        if connections is not None:
            paths = {i: self.scope.path(summary) for i, summary in connections.items()}
        self._outputs.append((scope or self.scope, paths, initial))
        if initial and entry:
            self._entries.append(len(self._outputs) - 1)
        return len(self._outputs) - 1

    def build(
        self, make: Callable[[Context], Step], *, frontier: bool = False, keeps: Keeps = Keeps.UNKNOWN
    ) -> list[Stream[Record]]:
        """Adds the operator to the dataflow and returns the streams of its outputs.

        `frontier`: the step is also called when an input frontier has moved. `keeps`: what it keeps from one time to
        the next; a dataflow with an operator that does not say cannot be recovered.
        """
        from dataflow.build.stream import Stream

        if self._built:
            raise ConstructionError(f"{self.name} was built already")
        self._built = True
        dataflow, scope = self.scope.dataflow, self.scope
        scope.require_open(self.name)
        connections = self._connections()
        number = dataflow.graph.add_node(
            self.name_on_graph,
            [origin.levels for _, _, origin in self._inputs],
            [target.levels for target, _, _ in self._outputs],
            connections,
            [o for o, (_, _, initial) in enumerate(self._outputs) if initial],
        )
        operator = Operator(dataflow, number, self.name)
        operator.watches_frontier = frontier
        operator.keeps = keeps
        for i, (source, pact, origin) in enumerate(self._inputs):
            port = InputPort(operator, i, pact, origin.domain)
            port.depth = len(origin.levels) - 1
            operator.inputs.append(port)
            if source is not None:
                dataflow.graph.add_edge(source, Target(number, i))
        for o, (target, _, _) in enumerate(self._outputs):
            paths = {i: path for (i, out), path in connections.items() if out == o}
            operator.outputs.append(OutputPort(operator, o, target.domain, paths))
        dataflow.operators.append(operator)
        starts = {o: dataflow.start(number, o) for o, (_, _, initial) in enumerate(self._outputs) if initial}
        if scope.parent is None and dataflow.resume_at is not None:
            for capability in starts.values():
                capability.downgrade(dataflow.resume_at)  # everything before was done before the crash
        if scope.parent is None:
            dataflow.entries += [operator.outputs[o] for o in self._entries]
        operator.step = make(Context(operator, starts))
        require_callable(operator.step, self.name, "step (what `make` returns)")
        return [Stream(target, Source(number, o)) for o, (target, _, _) in enumerate(self._outputs)]

    @property
    def name_on_graph(self) -> str:
        """The name with the pacts of its inputs: workers must agree on those as well."""
        pacts = [pact.name for _, pact, _ in self._inputs if not isinstance(pact, Pipeline)]
        return f"{self.name} [{', '.join(pacts)}]" if pacts else self.name

    def _connections(self) -> dict[tuple[int, int], PathSummary]:
        connections = {}
        for o, (_, paths, _) in enumerate(self._outputs):
            if paths is None:
                paths = {i: identity(self.scope.levels) for i in range(len(self._inputs))}
            for i, path in paths.items():
                if not 0 <= i < len(self._inputs):
                    raise ConstructionError(
                        f"output {o} of {self.name} is connected to input {i}, which does not exist"
                    )
                connections[i, o] = path
        return connections


def unary(
    stream: Stream[D],
    name: str,
    make: Callable[[Context], Callable[[InputPort[D], OutputPort[E]], None]],
    *,
    pact: Pact | None = None,
    frontier: bool = False,
    initial: bool = False,
    keeps: Keeps = Keeps.UNKNOWN,
) -> Stream[E]:
    """An operator with one input and one output."""
    builder = OperatorBuilder(stream.scope, name)
    builder.add_input(stream, pact)
    builder.add_output(initial=initial)

    def make_step(context: Context) -> Step:
        step = make(context)
        require_callable(step, name, "step (what `make` returns)")
        (input,), (output,) = context.inputs, context.outputs
        return lambda: step(input, output)

    (out,) = builder.build(make_step, frontier=frontier, keeps=keeps)
    return out


def binary(
    left: Stream[D],
    right: Stream[F],
    name: str,
    make: Callable[[Context], Callable[[InputPort[D], InputPort[F], OutputPort[E]], None]],
    *,
    pacts: tuple[Pact | None, Pact | None] = (None, None),
    frontier: bool = False,
    initial: bool = False,
    keeps: Keeps = Keeps.UNKNOWN,
) -> Stream[E]:
    """An operator with two inputs and one output."""
    builder = OperatorBuilder(left.scope, name)
    builder.add_input(left, pacts[0])
    builder.add_input(right, pacts[1])
    builder.add_output(initial=initial)

    def make_step(context: Context) -> Step:
        step = make(context)
        require_callable(step, name, "step (what `make` returns)")
        (first, second), (output,) = context.inputs, context.outputs
        return lambda: step(first, second, output)

    (out,) = builder.build(make_step, frontier=frontier, keeps=keeps)
    return out


@overload
def unary_notify(
    stream: Stream[Columns],
    name: str,
    on_batch: OnColumns[E],
    on_notify: OnNotify[E],
    *,
    pact: Pact | None = ...,
    keeps: Keeps = ...,
) -> Stream[E]: ...


@overload
def unary_notify(
    stream: Stream[D],
    name: str,
    on_batch: OnRows[D, E],
    on_notify: OnNotify[E],
    *,
    pact: Pact | None = ...,
    keeps: Keeps = ...,
) -> Stream[E]: ...


@overload
def unary_notify(
    stream: Stream[D],
    name: str,
    on_batch: OnColumns[E] | OnRows[D, E],
    on_notify: OnNotify[E],
    *,
    pact: Pact | None = ...,
    keeps: Keeps = ...,
) -> Stream[E]: ...


def unary_notify(
    stream: Stream[D],
    name: str,
    on_batch: OnColumns[E] | OnRows[D, E],
    on_notify: OnNotify[E],
    *,
    pact: Pact | None = None,
    keeps: Keeps = Keeps.UNKNOWN,
) -> Stream[E]:
    """An operator with one input and one output that reacts to batches and to completed times.

    `on_batch(capability, batch, output, notificator)`; `on_notify(capability, output, notificator)`.
    """

    def make(context: Context) -> Callable[[InputPort, OutputPort[E]], None]:
        notificator = context.notificator()

        def step(input: InputPort, output: OutputPort[E]) -> None:
            for message, batch in input:
                on_batch(message, batch, output, notificator)
            for capability in notificator:
                on_notify(capability, output, notificator)

        return step

    return unary(stream, name, make, pact=pact, frontier=True, keeps=keeps)


def require_callable(function: object, operator: str, role: str) -> None:
    """ConstructionError unless `function` can be called: better now than at the first record."""
    if not callable(function):
        raise ConstructionError(f"{operator} needs a function as its {role}, not {function!r}")
    if inspect.iscoroutinefunction(function):
        raise ConstructionError(f"{operator} cannot wait for an asynchronous function: only sources and sinks may")
