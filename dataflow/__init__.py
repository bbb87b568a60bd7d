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

- `order`, `timestamp`, `antichain`: times, their partial orders, frontiers. `durations`: "10s", and the calendar.
- `progress/`: which times may still arrive where. Pure; no I/O.
- `capability`, `notificator`, `builder`, `operator`: what operators are made of (`dataflow.lowlevel` collects it).
- `channels/`: how batches get from output to input. `operators/`: the operators.
- `scope`, `stream`: what programs are written with. `instance`: a dataflow on a worker. `worker`, `execute`: running
  it.
- `columns/`: batches of columns and their operators. `compiled/`: compiled code that is kept on disk.
- `comm/`: how workers reach each other. `codec`, `values/`: what travels between them. `agreement`: whether they build
  the same. `text`: theirs, fit to print.
- `explain`: why nothing happens; `watch`: says so. `foreign`: what to do about asyncio. `testing`: every interleaving
  is a seed.
- `harness/`: open-loop load, and what it shows. Not imported until asked for.
"""

from dataflow.build.capability import Capability
from dataflow.build.scope import Scope
from dataflow.build.stream import Stream
from dataflow.errors import CapabilityError, DataflowError, InputClosed, TimeError
from dataflow.execute import execute, execute_async
from dataflow.operators.inputs import InputHandle
from dataflow.operators.probe import Probe
from dataflow.operators.replay import EventWriter, read_events
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
    "Scope",
    "Stream",
    "TimeError",
    "Timestamp",
    "Worker",
    "execute",
    "execute_async",
    "read_events",
]
