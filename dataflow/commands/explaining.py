"""`python -m dataflow explain RUN`: who holds which time, since when, and who waits for it."""

from __future__ import annotations

import argparse

from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question
from dataflow.comm.codec import require_list
from dataflow.commands.asking import PATIENCE, Subparsers, add_command, look_twice


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    add_command(
        commands,
        "explain",
        _command,
        "who holds which time, since when, and who waits",
        "Shows what makes the run slow, if anything does, and for each worker: outstanding times and who holds them, "
        "since when; what is about to run; where state is; and who waits for what.",
        "  python -m dataflow explain app\n",
    )


def _command(options: argparse.Namespace) -> int:
    for reason in look_twice(options.run)[1]:
        print(reason.text)
    for each in require_list(ask_run(options.run, Question("explain"), PATIENCE)):
        worker, text = require_list(each, 2)
        text = str(text)
        print(text if text.startswith("worker ") else f"worker {worker}: {text}")
    return 0
