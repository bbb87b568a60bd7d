"""`python -m dataflow list`: the runs that have a name, on this host, of this user."""

from __future__ import annotations

import argparse
import sys
import time

from dataflow.asking.client import NoSuchRun, ask_run, list_runs
from dataflow.asking.messages import Question, Refused
from dataflow.commands.tables import duration_text, make_table
from dataflow.errors import DataflowError

_PATIENCE = 2.0  # seconds for a run to answer


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "list", help="list the runs on this host", description="Lists your runs on this host, by name."
    )
    parser.set_defaults(command=_command)


def _command(_: argparse.Namespace) -> int:
    try:
        names = list_runs()
    except DataflowError as error:
        print(f"dataflow: {error}", file=sys.stderr)
        return 1
    if not names:
        print("no run is here: python -m dataflow run starts one")
        return 0
    print("\n".join(make_table(["name", "pid", "workers", "since"], [_row(name) for name in names])))
    return 0


def _row(name: str) -> list[str]:
    try:
        facts = ask_run(name, Question("who"), _PATIENCE)
    except (NoSuchRun, Refused):  # it has just ended, or is busy
        return [name, "", "", "does not answer"]
    if not isinstance(facts, dict) or not isinstance(since := facts.get("since"), float):
        return [name, "", "", "answers something else"]
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
    age = duration_text(max(0.0, time.time() - since))
    return [name, str(facts.get("pid")), str(facts.get("workers")), f"{when} ({age})"]
