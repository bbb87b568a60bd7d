"""A timely dataflow engine on trio.

    async def main(worker):
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.map(str).inspect(print).probe()
        numbers.send([1, 2, 3])
        numbers.advance_to(1)
        await probe.wait_passed(0)

    dataflow.execute(main, workers=2)

Where things are:

- `time`: times, their partial orders, frontiers. `progress`: which times may still arrive where; pure, no I/O.
- `build`: scopes, streams, and what operators are made of; `lowlevel` collects it for authors of operators.
- `channels`: how batches get from output to input. `operators`: the operators on rows.
- `events`: records in any order at their own times. `windows`, `joins`: windows over these and
  joins in time, by key.
- `sources`, `sinks`: connectors that go on where they were, and that write each record once. `clients`: connections to
  the servers of others, for these.
- `columns`: batches of columns and their operators. `state`: what stateful operators keep from one time to the next.
- `run`: a worker and its dataflows. `execute`: running a program. `sharing`: workers in one loop. `launch`: workers as
  processes.
- `comm`: how workers reach each other, and what travels between them.
- `spark`: workers on the executors of a Spark cluster.
- `recovery`: snapshots, and going on from them. `asking`: a named run is asked things from another shell.
- `members`: workers that join and leave while dataflows run.
- `compiled`: compiled code that is kept on disk.
- `testing`: a test kit, in which every interleaving is a seed. `errors`: everything that is raised. `__main__`:
  `python -m dataflow`.
- `values`: names for users' own values. `text`: text of another process, made fit for people to read.
- `commands`: what it can do besides running programs. `page`: a run in a browser. `notebook`: runs in the background,
  with a view.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dataflow.errors import CapabilityError, DataflowError, InputClosed, TimeError
from dataflow.execute import execute, execute_async

if TYPE_CHECKING:
    from dataflow.build.capability import Capability
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream
    from dataflow.operators.inputs import InputHandle
    from dataflow.operators.probe import Probe
    from dataflow.operators.replay import EventWriter, read_events
    from dataflow.recovery.policy import Recovery
    from dataflow.run.worker import Worker
    from dataflow.time.antichain import Antichain
    from dataflow.time.order import Timestamp
    from dataflow.time.timestamp import Product

__all__ = [
    "Antichain",
    "Capability",
    "CapabilityError",
    "DataflowError",
    "EventWriter",
    "InputClosed",
    "InputHandle",
    "Probe",
    "Product",
    "Recovery",
    "Scope",
    "Stream",
    "TimeError",
    "Timestamp",
    "Worker",
    "execute",
    "execute_async",
    "read_events",
]

_HOMES = {  # imported when somebody asks for them: a program that starts workers in processes may never do so
    "Antichain": "dataflow.time.antichain",
    "Capability": "dataflow.build.capability",
    "EventWriter": "dataflow.operators.replay",
    "InputHandle": "dataflow.operators.inputs",
    "Probe": "dataflow.operators.probe",
    "Product": "dataflow.time.timestamp",
    "Recovery": "dataflow.recovery.policy",
    "Scope": "dataflow.build.scope",
    "Stream": "dataflow.build.stream",
    "Timestamp": "dataflow.time.order",
    "Worker": "dataflow.run.worker",
    "read_events": "dataflow.operators.replay",
}
_ROOMS = {  # programs that imported this package alone have used these
    "asking", "build", "channels", "columns", "comm", "members", "operators", "progress", "recovery", "run", "text",
    "time", "values",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"dataflow.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
