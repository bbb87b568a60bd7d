"""What all commands have in common that ask a run something: its name on the command line, and errors as one line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dataflow.asking.client import ask_run
from dataflow.asking.elsewhere import Elsewhere
from dataflow.asking.folder import check_run_name
from dataflow.asking.messages import Question
from dataflow.comm.codec import require_list, require_mapping
from dataflow.errors import DataflowError
from dataflow.launch.hosts import ClusterError, parse_address, read_secret, read_tls
from dataflow.run.readings import WorkerReading
from dataflow.run.reasons import Reason, find_reasons

PATIENCE = 15.0  # seconds for a run to answer: a worker answers between two steps
_BETWEEN = 0.5  # seconds
Subparsers = argparse._SubParsersAction  # argparse has no public name for it


class WrongCommand(DataflowError):
    """Something on the command line that cannot be right, whatever the run is."""


_STATUS = "\n\nexit status: 0 when the run has answered, 1 when not (the message says why), 2 for a wrong command\n"


def add_command(
    commands: Subparsers[argparse.ArgumentParser],
    name: str,
    command: Callable[[argparse.Namespace], int],
    help: str,
    description: str,
    examples: str,
) -> argparse.ArgumentParser:
    """Adds a command whose first argument is the name of a run."""
    parser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=examples.rstrip() + _STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser, command)
    return parser


def add_run(parser: argparse.ArgumentParser, command: Callable[[argparse.Namespace], int]) -> None:
    """The run that a command is about: its first argument, and how it is reached if it is elsewhere."""
    parser.set_defaults(command=lambda options: told(command, options))
    parser.add_argument("run", metavar="RUN", help="its name (python -m dataflow list), or HOST:PORT of its --control")
    group = parser.add_argument_group("a run on another host", "It was started with --control HOST:PORT.")
    group.add_argument("--secret", type=Path, metavar="FILE", help="with the secret of the run")
    group.add_argument("--cert", type=Path, metavar="FILE", help="a certificate, if the run was given one")
    group.add_argument("--key", type=Path, dest="private_key", metavar="FILE", help="its private key")
    group.add_argument("--ca", type=Path, metavar="FILE", help="the authority that signed both certificates")


def port_number(text: str) -> int:
    """Of the command line: where to listen. 0 means any that is free."""
    if text.isascii() and text.isdigit() and int(text) < 1 << 16:
        return int(text)
    raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535 (0: any that is free), not {text!r}")


def find_run(options: argparse.Namespace) -> str:
    """The run that is meant. ClusterError or WrongCommand if that cannot be right."""
    tls = read_tls(options.cert, options.private_key, options.ca)
    if ":" not in options.run:
        if options.secret or tls:
            raise WrongCommand(f"--secret is for a run at HOST:PORT, and {options.run!r} is a name on this host")
        try:
            return check_run_name(options.run)
        except ValueError as error:
            raise WrongCommand(str(error)) from None
    address = parse_address(options.run, "a run on another host")
    if options.secret is None:
        raise WrongCommand(f"{options.run} is asked over the network, with its secret: give --secret FILE")
    return Elsewhere(address, read_secret(options.secret), tls)


def told(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Runs a command; what goes wrong is one line on standard error."""
    try:
        options.run = find_run(options)
        return command(options)
    except (ClusterError, WrongCommand) as error:
        print(f"dataflow: {error}", file=sys.stderr)
        return 2
    except (DataflowError, ValueError) as error:
        print(f"dataflow: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1


class Status:
    """What a run says of itself, checked."""

    def __init__(self, run: str) -> None:
        facts, readings, silent = require_list(ask_run(run, Question("status"), PATIENCE), 3)
        self.facts = {str(key): value for key, value in require_mapping(facts).items()}
        self.silent = {f"worker {key}": str(value) for key, value in require_mapping(silent).items()}
        self.workers = [_reading(each) for each in require_list(readings)]


def reasons_between(before: Status, now: Status) -> list[Reason]:
    """What makes a run slow, if anything does, as the page says it."""
    return find_reasons(before.workers, now.workers, now.silent)


def look_twice(run: str) -> tuple[Status, list[Reason]]:
    """How a run is, and what makes it slow. Half a second of it is looked at: what was long ago explains nothing."""
    before = Status(run)
    time.sleep(_BETWEEN)
    now = Status(run)
    return now, reasons_between(before, now)


def _reading(given: object) -> WorkerReading:
    if not isinstance(given, WorkerReading):
        raise ValueError("the run answers something else: use the same version of dataflow as it does")
    return given
