"""Rows and columns have their own options: those of the others are refused, with a word on what to do."""

from __future__ import annotations

from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.errors import ConstructionError
from dataflow.testing import simulate


@megaphone.fold(state={"count": "i8"}, output={"key": "i8"})
def tally(key: Any, state: Any) -> Any:
    state.count += 1
    return key


def nothing(*_: Any) -> tuple[()]:
    return ()


ROWS: dict[str, Any] = {"key": len, "fold": nothing, "name": "words"}
BATCHES: dict[str, Any] = {"key": "key", "fold": nothing, "state": {"n": "i8"}, "name": "words"}
FOLDS: dict[str, Any] = {"key": "key", "fold": tally, "right_fold": tally, "name": "words"}


@pytest.mark.parametrize(
    ("build", "options", "complaint"),
    [
        (megaphone.unary, ROWS | {"pending": {"x": "i8"}}, "words: pending= is for columns, where key= is the name"),
        (megaphone.unary, ROWS | {"keys": megaphone.dense(8)}, "words: keys= is for columns"),
        (megaphone.binary, ROWS | {"right_fold": tally}, "words: right_fold= is for columns"),
        (megaphone.binary, ROWS | {"due": tally}, "words: due= is for columns"),
        (megaphone.state_machine, {"fold": nothing, "value": "x"}, "state_machine: value= is for columns"),
        (megaphone.state_machine, {"fold": nothing, "order": ["x"]}, "state_machine: order= is for columns"),
        (megaphone.unary, BATCHES | {"by_key": True}, "words: by_key= is for rows; keys of columns can be pinned"),
        (megaphone.unary, BATCHES | {"state": None}, "words: say what its state is, such as state="),
        (megaphone.binary, BATCHES | {"right_key": len}, "words: both keys must be names of columns, or both"),
        (megaphone.binary, BATCHES | {"due": tally}, "words: due= is for two compiled folds: say right_fold="),
        (megaphone.binary, FOLDS | {"state": {"n": "i8"}}, "words: state= is for a function of batches: a compiled"),
        (megaphone.unary, ROWS | {"key": 3}, "words needs a function as its key, not 3"),
        (megaphone.unary, ROWS | {"state": 3}, "words needs a function as its state .a function that makes"),
    ],
)
def test_options_of_the_others_are_refused(build: Any, options: dict[str, Any], complaint: str) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input()
            streams = [scope.input()[1] for _ in range(2 if build is megaphone.binary else 1)]
            with pytest.raises(ConstructionError, match=complaint):
                build(configuration, *streams, **options)
            raise LookupError  # a dataflow that is half built is of no use

    with pytest.raises(LookupError):
        simulate(main, workers=1)


def test_options_that_say_nothing_are_nobodys() -> None:
    """A query that is written once for rows and columns may pass None on."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input()
            _, stream = scope.input()
            megaphone.unary(configuration, stream, **ROWS, pending=None, keys=None)
            megaphone.unary(configuration, stream, **BATCHES, by_key=False)
            megaphone.binary(configuration, stream, stream, **FOLDS, state=None, due=None)

    simulate(main, workers=1)


def test_an_option_that_nobody_has_is_refused() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input()
            _, stream = scope.input()
            for options in (ROWS, BATCHES):
                with pytest.raises(TypeError, match="unexpected keyword argument 'bin'"):
                    megaphone.unary(configuration, stream, bin=4, **options)
            raise LookupError

    with pytest.raises(LookupError):
        simulate(main, workers=1)
