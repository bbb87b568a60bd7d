"""The command line: ``python -m nexmark COMMAND ...``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from dataflow.errors import TooManyWorkers
from nexmark.commands import demo, generate, latency, run, verify
from nexmark.commands.options import FAILED, INTERRUPTED, USAGE, Misuse

COMMANDS = (generate, run, latency, verify, demo)

DESCRIPTION = """\
NEXMark: the events of an auction site, persons who open auctions and bid on them, and eight queries over the stream.
Every command says more about itself: python -m nexmark COMMAND --help.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 it did what was asked, 1 it failed, 2 it could not be asked."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (Misuse, TooManyWorkers) as misuse:
        print(f"python -m nexmark {options.command}: {misuse}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:  # whoever read our output has gone, `head` for one
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would complain again at its end
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nexmark", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser
