"""`python -m dataflow scale | drain | members RUN`: workers join and leave a run that has a name."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question
from dataflow.comm.codec import require_list
from dataflow.commands.asking import Subparsers, WrongCommand, add_run

_MARGIN = 10.0  # seconds for the run to say that its time is over

_EPILOG = """\
  python -m dataflow run app:main --workers 2 --name app
  python -m dataflow scale app 4                            from another shell
  python -m dataflow members app
  python -m dataflow drain app --worker 3

exit status: 0 when it is done, 1 when it is not (the message says why), 2 for a wrong command
"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the commands."""
    scale = _add(commands, "scale", "have workers join or leave until there are so many", _scale)
    scale.add_argument("workers", type=int, metavar="N", help="how many workers there shall be")
    drain = _add(commands, "drain", "move a worker's state to the others, and have it leave", _drain)
    drain.add_argument("--worker", type=int, required=True, metavar="N", help="the number of the worker")
    _add(commands, "members", "list the workers of a run", _members)


def _add(
    commands: Subparsers[argparse.ArgumentParser],
    name: str,
    text: str,
    command: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    kind = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=text, description=text.capitalize(), epilog=_EPILOG, formatter_class=kind)
    add_run(parser, command)
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="wait no longer (default: 60)"
    )
    return parser


def _scale(options: argparse.Namespace) -> int:
    if options.workers < 1:
        raise WrongCommand(f"a run has one worker or more, not {options.workers}; python -m dataflow stop RUN ends it")
    return _change(options, Question("scale", {"workers": options.workers, "timeout": options.timeout}))


def _drain(options: argparse.Namespace) -> int:
    return _change(options, Question("drain", {"worker": options.worker, "timeout": options.timeout}))


def _change(options: argparse.Namespace, question: Question) -> int:
    if not options.timeout > 0:
        raise WrongCommand("--timeout must be more than 0")
    time, seconds, first, pause = require_list(ask_run(options.run, question, options.timeout + _MARGIN), 4)
    parts = [f"done: as of time {time}"]
    parts += [f"{seconds:.2f} s after it was asked for"] if isinstance(seconds, float) else []
    parts += [f"the first record at a new worker after {first:.2f} s"] if isinstance(first, float) else []
    parts += [f"sources paused for {pause * 1000:.1f} ms"] if isinstance(pause, float) else []
    print("it was so already" if time is None else ", ".join(parts))
    return 0


def _members(options: argparse.Namespace) -> int:
    answer = ask_run(options.run, Question("members", {}), options.timeout)
    workers, time, leaving = require_list(answer, 3)
    since = "from the beginning" if time is None else f"as of time {time}"
    print(f"workers {', '.join(map(str, require_list(workers)))}, {since}")
    if require_list(leaving):
        print(f"leaving: {', '.join(map(str, require_list(leaving)))}")
    return 0
