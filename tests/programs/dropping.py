"""Dropping a dataflow that would never end, from one worker: it ends on all of them, whoever waits for it is told, and
the dataflow beside it is not disturbed."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

import dataflow
from dataflow.errors import DataflowDropped
from tests.oracles import tables
from tests.programs import word_count
from tests.programs.running import PACES, Epochs, Run, feed, gathered, random_epochs, require, require_same


def endless_loop(scope: dataflow.Scope) -> Any:
    """Records that go round for ever."""
    handle, stream = scope.input("doomed")
    probe = stream.iterate(lambda inner: inner.exchange(lambda n: n).map(lambda n: n + 1)).probe()
    return handle, probe


def open_input(scope: dataflow.Scope) -> Any:
    """An input that is never advanced."""
    handle, stream = scope.input("doomed")
    return handle, stream.count(lambda n: n).probe()


def endless_source(scope: dataflow.Scope) -> Any:
    """A source that never ends, and an input at which it stays for ever."""
    handle, stream = scope.input("doomed")
    numbers = scope.source(count, batch=1, ahead=4)
    return handle, numbers.join(stream, lambda n: n).probe()


DOOMED = (endless_loop, open_input, endless_source)


async def main(worker: dataflow.Worker, pace: str, doom: Any, dropper: int, lines: Epochs) -> list[Any]:
    """Returns the word count of the dataflow that was kept."""
    found: list[Any] = []
    with worker.dataflow("doomed") as doomed:
        doomed_input, doomed_probe = doom(doomed)
    with worker.dataflow("kept") as scope:
        line_input, line_probe = word_count.build(scope, found)
    try:
        doomed_input.send([worker.index])  # unless the dropper was so quick that it is gone already
    except DataflowDropped:
        require(worker.index != dropper, "dropped before anybody dropped it")
    if worker.index == dropper:
        worker.drop_dataflow(doomed)
    await expect_dropped(doomed_probe.wait_passed, 0)
    await feed(worker, pace, line_probe, (line_input, lines))
    await line_probe.wait_done()
    try:
        doomed_input.send([1])
    except DataflowDropped:
        return found
    raise AssertionError("a dataflow that was dropped took a record")


async def expect_dropped(wait: Any, *args: Any) -> None:
    """Waits for what cannot come."""
    try:
        await wait(*args)
    except DataflowDropped as error:
        require("doomed" in str(error), f"{error} does not name the dataflow")
    else:
        raise AssertionError("a wait for a dataflow that was dropped ended as if it had not been")


def check(run: Run, chance: Random) -> None:
    """Any worker may be the one that drops."""
    lines = random_epochs(chance, word_count.random_line)
    doom, dropper = chance.choice(DOOMED), chance.randrange(run.workers)
    results = run(main, chance.choice(PACES), doom, dropper, lines)
    require_same(gathered(results), tables.word_count(lines))
