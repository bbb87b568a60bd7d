"""`python -m dataflow get RUN OPERATOR KEY`: the state of a key, read while the stream flows."""

from __future__ import annotations

import argparse
import ast
import json

from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question, Refused
from dataflow.comm.codec import require_mapping
from dataflow.commands.asking import PATIENCE, Subparsers, add_command

_EXAMPLES = """\
  python -m dataflow get app totals fox             the key 'fox'
  python -m dataflow get app totals 7               the key 7; if it has no state, the key '7'
  python -m dataflow get app totals "('fox', 1)"    a tuple, as Python writes it

Nothing stops for it: the worker that has the key answers between two steps, with what it has applied by then.
"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands, "get", _command, "the state of a key", "Shows the state that an operator has for a key.", _EXAMPLES
    )
    parser.add_argument("operator", metavar="OPERATOR", help="the name= of a stateful operator (or DATAFLOW/NAME)")
    parser.add_argument("key", metavar="KEY", help="a number, a tuple as Python writes it, or any text")
    parser.add_argument("--json", action="store_true", help="with the worker, the shard and the time")


def keys_of(text: str) -> list[object]:
    """What a key on the command line may mean, the likeliest first.

    >>> keys_of("7"), keys_of("fox"), keys_of("('fox', 1)")
    ([7, '7'], ['fox'], [('fox', 1), "('fox', 1)"])
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return [text]
    return [value, text] if not isinstance(value, str) else [value]


def _command(options: argparse.Namespace) -> int:
    first: Refused | None = None
    for key in keys_of(options.key):
        question = Question("get", {"operator": options.operator, "key": key})
        try:
            found = require_mapping(ask_run(options.run, question, PATIENCE))
        except Refused as error:
            first = first or error
            continue
        if options.json:
            print(json.dumps({str(name): value for name, value in found.items()}, default=repr))
        else:
            print(found["text"])
        return 0
    assert first is not None
    raise first
