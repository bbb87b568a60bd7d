"""A function that raises: the error names the operator, the time, the key and the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.channels.blame import shortened
from dataflow.lowlevel import Exchange
from dataflow.state.native import state_machine
from dataflow.testing import simulate

BAD = 7


def fail(n: int) -> int:
    if n == BAD:
        raise ValueError("bad")
    return n


def generate(n: int) -> Any:
    yield n
    fail(n)


Stream = Any
OPERATORS: dict[str, Callable[[Stream], object]] = {
    "map": lambda s: s.map(fail),
    "flat_map": lambda s: s.flat_map(lambda n: [fail(n)]),
    "flat_map, a generator": lambda s: s.flat_map(generate),
    "filter": lambda s: s.filter(fail),
    "inspect": lambda s: s.inspect(lambda time, n: fail(n)),
    "exchange": lambda s: s.exchange(fail),
    "partition": lambda s: s.partition(2, lambda n: fail(n) % 2),
    "aggregate": lambda s: s.aggregate(lambda n: n, int, lambda total, n: total + fail(n)),
    "key of aggregate": lambda s: s.aggregate(fail, int, lambda total, n: total + n),
    "key of reduce": lambda s: s.reduce(fail, lambda key, records: records),
    "key of join": lambda s: s.join(s.map(str), fail, int),
    "emit of join": lambda s: s.join(s, lambda n: n, lambda n: n, lambda key, a, b: fail(key)),
    "native state_machine": lambda s: state_machine(
        s.map(lambda n: (n, n)), fold=lambda key, value, state: (state, [fail(value)])
    ),
    "megaphone's state_machine": lambda s: megaphone.state_machine(
        s.scope.input()[1], s.map(lambda n: (n, n)), fold=lambda key, value, state: (state, [fail(value)]), bins=4
    ),
    "megaphone's key": lambda s: megaphone.unary(
        s.scope.input()[1], s, key=fail, fold=lambda time, records, state, later: [], state=dict, bins=4
    ),
}
KEYED = {"aggregate, emit": lambda s: s.aggregate(lambda n: n, int, lambda total, n: n, lambda key, total: fail(key)),
         "reduce": lambda s: s.reduce(lambda n: n, lambda key, records: [fail(key)])}  # fmt: skip


def failing(build: Callable[[Stream], object], workers: int) -> list[str]:
    """The notes of what is raised when one record of many is bad."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            build(stream)
        for time in range(4):
            numbers.advance_to(time)
            if worker.index == 0:
                numbers.send(range(4 * time, 4 * time + 4))  # 7 is sent at 1

    with pytest.raises(ValueError, match="bad") as caught:
        simulate(main, workers=workers, seed=3)
    return caught.value.__notes__


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_record_is_named(name: str, workers: int) -> None:
    if (name, workers) == ("exchange", 1):
        return  # one worker exchanges nothing, and asks for no key
    notes = failing(OPERATORS[name], workers)
    named = [note for note in notes if note.startswith("at the record ")]
    assert named[0] in ("at the record 7", "at the record (7, 7)", "at the record (7, 7, 7)"), notes
    assert len(named) == 1
    assert "at the time 1" in notes
    assert any("in operator" in note or "in main" in note for note in notes), notes


@pytest.mark.parametrize("name", KEYED)
def test_a_key_is_named_where_there_is_no_record(name: str) -> None:
    notes = failing(KEYED[name], 2)
    assert "for the key 7" in notes
    assert "at the time 1" in notes


def test_columns_name_a_record_as_well() -> None:
    notes = failing(lambda s: s.map(lambda n: (n, n)).map(lambda pair: fail(pair[0])), 1)
    assert "at the record (7, 7)" in notes


class Unspeakable:
    def __repr__(self) -> str:
        raise OSError


def test_what_a_record_looks_like_is_short_and_safe() -> None:
    assert len(shortened(list(range(1000)))) == 200
    assert shortened("two\nlines") == "'two\\nlines'"
    assert shortened(Unspeakable()) == "<a Unspeakable, whose repr raises OSError>"


def test_any_collection_may_be_split() -> None:
    class Odd(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            yield from [7]

    for batch in (Odd([7]), {7}, (7,), range(7, 8)):
        with pytest.raises(ValueError, match="bad"):
            Exchange(fail).split(batch, 2)
