"""`python -m dataflow trace RUN --seconds 5`: a timeline of all workers, in the Chrome trace format."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from dataflow.asking.answers.trace import LONGEST
from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question
from dataflow.comm.codec import require_list
from dataflow.commands.asking import PATIENCE, Subparsers, WrongCommand, add_command
from dataflow.run.tracing import StepTrace

_EXAMPLES = """\
  python -m dataflow trace app --seconds 5 --to app.json

Open the file with https://ui.perfetto.dev or chrome://tracing: a process for each worker, a line for each dataflow, a
slice for each step of an operator.
"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "trace",
        _command,
        "a timeline of all workers (Chrome trace format)",
        "Notes for some seconds which operator runs when, on every worker, and writes that as a Chrome trace.",
        _EXAMPLES,
    )
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="for how long (default: 5)")
    parser.add_argument("--to", type=Path, metavar="FILE", help="where to write it (default: RUN.trace.json)")


def _command(options: argparse.Namespace) -> int:
    if not 0 < options.seconds <= LONGEST:
        raise WrongCommand(f"--seconds is more than 0 and at most {LONGEST:g}")
    question = Question("trace", {"seconds": options.seconds})
    timelines = [
        each
        for each in require_list(ask_run(options.run, question, options.seconds + PATIENCE))
        if isinstance(each, StepTrace)
    ]
    path = options.to or Path(f"{options.run}.trace.json")
    try:
        path.write_text(json.dumps({"traceEvents": [*events(timelines)], "displayTimeUnit": "ms"}))
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None
    steps = sum(len(each.took) for each in timelines)
    cut = "" if all(each.complete for each in timelines) else "; there were more than fit: trace fewer seconds"
    print(f"{path}: {steps:,} steps of {len(timelines)} workers{cut}")
    return 0


def events(timelines: list[StepTrace]) -> Iterator[dict[str, object]]:
    """The events of the Chrome trace format: times in microseconds from the first step on."""
    first = min((int(each.began[0]) for each in timelines if len(each.began)), default=0)
    for each in timelines:
        who = {"pid": each.worker}
        named = {"name": f"worker {each.worker} (process {each.pid})"}
        yield {"ph": "M", "name": "process_name", **who, "args": named}
        names = list(each.names.items())
        for number, (dataflow, _) in enumerate(names):
            yield {"ph": "M", "name": "thread_name", **who, "tid": number, "args": {"name": dataflow}}
        columns = (each.dataflows, each.operators, each.began, each.took)
        for number, operator, began, took in zip(*(column.tolist() for column in columns), strict=True):
            name = names[number][1][operator]
            times = {"ts": (began - first) / 1000, "dur": took / 1000}
            place = {**who, "tid": number}
            yield {"ph": "X", "name": name, "cat": "step", **place, **times, "args": {"operator": operator}}
