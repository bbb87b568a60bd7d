"""Where the shards of an operator are and what they cost, in at most so many cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.asking.answers.get import find_operator
from dataflow.asking.messages import Arguments, Question, Refused, text_of
from dataflow.asking.run import NamedRun
from dataflow.run.bins import BinsReading, read_bins

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """Readings: worker 0 knows of all where state can move; otherwise each worker of its own."""
    question = Question("bins", arguments)
    first = await run.ask_worker(0, question)
    if not isinstance(first, BinsReading) or first.movable:
        return [first]
    answers = await run.ask_all(question)
    return [each for each in answers.values() if isinstance(each, BinsReading)]


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """A reading."""
    _, operator = find_operator(pump, text_of(arguments, "operator"))
    first, last, cells = (_number(arguments, name) for name in ("first", "last", "cells"))
    if last < first:
        raise Refused(f"bins are asked for from a first to a last one, not from {first} to {last}")
    return read_bins(operator, pump.index, first, last, cells)


def _number(arguments: Arguments, name: str) -> int:
    value = arguments.get(name)
    if type(value) is not int or value < 0:
        raise Refused(f"{name!r} must be a number from 0 on, not {value!r}")
    return value
