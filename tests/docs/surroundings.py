"""What stands around the fragments of a page, so that they are a program.

`@0` is the page's first block of Python, `@1` its second. A block is put in as it stands, indented like its place;
`@1[:2]` are its first two lines. Only what takes long is made shorter, by `SHORTER`.
"""

from __future__ import annotations

SHORTER = {
    "measuring": [("duration=10", "duration=0.3"), ("warmup=2", "warmup=0.1"), ("epoch == 3000", "epoch == 100")],
    "nexmark": [
        ("rate=100_000, duration=10, migrations=[(3, ", "rate=20_000, duration=1, migrations=[(0.3, "),
        ("(6, ", "(0.6, "),
        ("warmup=1)", "warmup=0.1)"),
    ],
    "recovery": [("range(worker.resume_at, 1000)", "range(worker.resume_at, 20)")],
}

SURROUNDINGS = {
    "autoscaling": """
from planners.scaling.work import OperatorWork, RecordFlow, SourceWork, WorkInterval

class worker:
    scale = None

flows = [RecordFlow("lines", "counts", 1e6)]
interval = WorkInterval(10.0, 2, [SourceWork("lines", 1e6)], [OperatorWork("counts", 1e6, 19.0)], flows)
@0
assert driver.decisions == [decision] and decision.wanted == 2, decision
""",
    "concepts": """
import dataflow
from dataflow.testing import simulate

results = ["a result"]
seen = []

def operator(context):
    def step(input, output):
        @2
    return step

async def pairs(worker):
    @0

async def main(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        stream.unary("keeps", operator).inspect(lambda time, text: seen.append(text))
        @3
        ones.inspect(lambda time, one: seen.append(one))
        @1[:1]
    numbers.send([6, 7])
    numbers.advance_to(4)
    @1[1:]
    assert probe.passed(3)

simulate(pairs, workers=1)
simulate(main, workers=1)
assert sorted(map(str, seen)) == ["1", "1", "a result"], seen
""",
    "measuring": """
@0

if __name__ == "__main__":
    import sys
    import numpy as np
    import megaphone

    def count(word, one, total):
        return (total or 0) + one, [(word, total)]

    async def moving(worker):
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            words, stream = scope.input()
            counts = megaphone.state_machine(configuration, stream.map(lambda n: (n % 10, 1)), fold=count, bins=16)
            probe = counts.probe()
        controller = megaphone.Controller(control, counts)
        target = np.zeros(16, "u4")
        schedule = harness.LoadSchedule(rate=1_000, duration=0.3, workers=worker.peers)
    @1

    async def shown(worker):
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.probe()
        schedule = harness.LoadSchedule(rate=1_000, duration=0.3, workers=worker.peers)
        bins, terminal = None, False

        def send(epoch, low, high):
            numbers.send(range(low, high))

        @3

    dataflow.execute(shown, workers=1)
    outcome = harness.Outcome.of(dataflow.execute(moving, workers=2), warmup=0.05)
    @2
    assert Path("report.html").stat().st_size > 10_000
""",
    "nexmark": """
@0
assert len(events["bid"]["price"]) == 920
from nexmark.__main__ import main as command
command(["generate", "--events", "2000", "--out", "events"])
@1
if __name__ == "__main__":
    @2
""",
    "offline-tables": """
import numpy as np
import megaphone
import planners.live
from types import SimpleNamespace

statistics = SimpleNamespace(listeners=[], nanoseconds=np.ones(10))
controller = SimpleNamespace(
    migrate=lambda to, strategy: print(to), statistics=statistics, pinned={}, bins_of=lambda keys: keys,
    configuration=tuple([0] * 4 + [1] * 3 + [2] * 3), busy=False, pins_keys=True, counts=np.ones(10, np.int64),
    members=range(3),
)
planners.live.spark_maker = lambda logs, options: lambda out: None  # Spark makes them in tests/planners/test_live.py
sizes, loads = np.array([5, 6, 9, 1, 8, 4, 1, 3, 2, 6]), np.array([8, 4, 7, 9, 2, 4, 1, 4, 7, 5])
@1
@0
@2[:7]
print(live.step(statistics.nanoseconds))
live.close()
""",
    "operators": """
from dataflow.testing import simulate

@0
simulate(main, workers=1)

async def summed(worker):
    seen = []
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        @1
        probe = sums.inspect(lambda time, total: seen.append(total)).probe()
    numbers.send([1, 2, 3])
    numbers.close()
    await probe.wait_done()
    return seen

assert sorted(map(sum, simulate(summed, workers=2))) == [0, 12]
""",
    "planning": """
import megaphone
from types import SimpleNamespace

controller = SimpleNamespace(migrate=lambda to, strategy: print(to))
@0
assert plan.cost == 9
@1
@2
import dataflow
from dataflow.testing import simulate

async def main(worker):
    query = megaphone.plans.Query(streams=("a", "b", "c"), on=0, window=10)
    inputs, streams = {}, {}
    @3[:4]
        control, configuration = scope.input()
        for name in query.streams:
            inputs[name], streams[name] = scope.input()
    @3[5:8]
        probe = joined.probe()
    @3[8:10]
    for time in range(10):
        for handle in inputs.values():
            handle.send([(time % 3, time)])
            handle.advance_to(time + 1)
    @3[11:]
        controller.advance_to(time + 1)
        await probe.wait_passed(time)

simulate(main, workers=2)
""",
    "rebalancing": """
@0
keys = rng.zipf(1.5, 1_000)
@1
import dataflow
import megaphone
from dataflow.testing import simulate

def count(word, one, total):
    return (total or 0) + one, [(word, total)]

async def main(worker):
    with worker.dataflow() as scope:
        control, configuration = scope.input()
        words, stream = scope.input()
        counts = megaphone.state_machine(configuration, stream, fold=count, bins=16)
        probe = counts.probe()
    @2[:5]
    for time in range(20):
        words.send([(time % 3, 1)])
        words.advance_to(time + 1)
        if worker.index == 0:
            @2[5:]
        controller.advance_to(time + 1)
        await probe.wait_passed(time)

simulate(main, workers=2)
""",
    "recovery": """
import sqlite3
from pathlib import Path

def read_from(position):
    return [position, position + 1]

async def nothing(worker):
    return worker.index

main = nothing
if __name__ == "__main__":
    @0

@1
Path("logs").mkdir()
Path("logs/a.txt").write_text("the fox and the dog\\n")
dataflow.execute(main, "logs", "out.db", workers=1, recovery="counts/")
assert dict(sqlite3.connect("out.db").execute("select word, total from totals"))["the"] == 2
@3
dataflow.execute(main, workers=1, recovery=dataflow.Recovery("numbers/", every=0.01))
@4
""",
    "running": """
import dataflow

async def main(worker, *arguments):
    with worker.dataflow() as scope:
        handle, stream = scope.input()
        stream.map(str)
    batches = [[1, 2], [3]]
    @1
    return worker.index

arguments = ["a"]
if __name__ == "__main__":
    @0
    assert results == [0, 1, 2, 3]
""",
    "scaling": """
import megaphone
import trio
from dataflow.testing import simulate

over = trio.Event()
seen = []

def print(workers, time):
    seen.append(tuple(workers))

def count(word, one, total):
    return (total or 0) + one, [(word, total)]

async def watch(worker):
    @0[5:]

async def ask(worker):
    @0[:4]
    over.set()

async def feed(worker, words, probe):
    time = worker.resume_at
    while not over.is_set():
        words.send([(time % 7, 1)])
        words.advance_to(time + 1)
        await probe.wait_passed(time)
        time += 1
    words.close()
    await probe.wait_done()

async def main(worker):
    with worker.dataflow() as scope:
        words, stream = scope.input()
        counts = megaphone.state_machine(scope.control(), stream, fold=count, bins=16)
        probe = counts.probe()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, worker)
        if worker.index == 0:
            nursery.start_soon(ask, worker)
        await feed(worker, words, probe)
        nursery.cancel_scope.cancel()

simulate(main, workers=2)
assert (0, 1) in seen and (0, 1, 2, 3) in seen, seen
""",
}
