"""`python -m dataflow migrate RUN --operator NAME --to even`: moves state between workers while the stream flows."""

from __future__ import annotations

import argparse
import sys
import time

from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question
from dataflow.build.hooks import Movement
from dataflow.commands.asking import PATIENCE, Subparsers, WrongCommand, add_command

_EXAMPLES = """\
  python -m dataflow migrate app --operator totals --to even --strategy batched:64
  python -m dataflow migrate app --operator totals --to worker:1 --dry-run
  python -m dataflow migrate app --operator totals --to 0-63=1,64=0 --strategy fluid --no-wait
  python -m dataflow migrate app --operator totals --cancel

--to         even      as many bins on each worker, with the fewest moves
             bytes     as many bytes on each worker, as far as whole bins allow
             worker:1  all bins there (worker:0,1: evenly on these)
             7=1,8-9=0 these bins there; the others stay. A bin may be a prefix: 0110*=1
             split:0110*/4  cuts a bin into four (merge:011*: makes it one), and moves nothing that need not
--strategy   all-at-once, fluid, batched:64, matched or within:20ms (a bound on the latency); options after commas:
             budget=8MB, gap=2, order=biggest
"""
_LOOK = 0.1  # seconds between looks


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "migrate",
        _command,
        "move state between workers",
        "Moves the state of an operator between workers, and shows how far it is. Results stay as they would be.",
        _EXAMPLES,
    )
    parser.add_argument("--operator", required=True, metavar="NAME", help="a migratable operator (or DATAFLOW/NAME)")
    parser.add_argument("--to", metavar="WHERE", help="where its bins shall be")
    parser.add_argument("--strategy", default="batched:64", metavar="HOW", help="in which steps (default: batched:64)")
    parser.add_argument("--dry-run", action="store_true", help="only say what it would be")
    parser.add_argument("--no-wait", action="store_true", help="begin, and do not wait for the end")
    parser.add_argument("--cancel", action="store_true", help="give up the steps that have not begun")


def _command(options: argparse.Namespace) -> int:
    if options.cancel == (options.to is not None):
        raise WrongCommand("say --to WHERE, or --cancel")
    action = "cancel" if options.cancel else "dry" if options.dry_run else "begin"
    movement = _ask(options, action)
    if action == "dry":
        if movement.to.startswith(("split:", "merge:")):
            print(f"{options.operator}: {movement.to} makes sense")
            return 0
        print(f"{options.operator}: {movement.shards} bins would move, in {movement.steps} steps ({movement.strategy})")
        return 0
    while not options.no_wait and movement.under_way:
        if sys.stderr.isatty():
            print(f"\r{_text(options.operator, movement)}", end="", file=sys.stderr, flush=True)
        time.sleep(_LOOK)
        movement = _ask(options, "look")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(_text(options.operator, movement))
    return 1 if movement.failure else 0


def _ask(options: argparse.Namespace, action: str) -> Movement:
    words = {"to": options.to or "", "strategy": options.strategy}
    question = Question("migrate", {"operator": options.operator, "action": action, **words})
    movement = ask_run(options.run, question, PATIENCE)
    if not isinstance(movement, Movement):
        raise ValueError("the run answers something else: use the same version of dataflow as it does")
    return movement


def _text(operator: str, movement: Movement) -> str:
    done = f"{movement.shards_done} of {movement.shards} bins moved, {movement.steps_done} of {movement.steps} steps"
    if movement.to.startswith(("split:", "merge:")):
        done = f"{movement.to} {'under way' if movement.under_way else 'done'}"
    return f"{operator}: {done}{'; ' + movement.failure if movement.failure else ''}"
