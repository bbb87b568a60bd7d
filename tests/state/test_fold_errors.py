"""Folds that cannot be used as they are written: said before anything runs, with the line and what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from dataflow.errors import ConstructionError
from dataflow.state.folds.fold import FoldError, fold
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.tables.table import Dense
from tests.columns.folds import TWO, crossing, gather, several, split

N = {"n": "i8"}


def generator(key, value, state, emit):
    state.n += value
    yield key


def delegating(key, value, state, emit):
    yield from [key]


def stranger(key, value, state, colour):
    state.n += value


def nothing_declared(key, value, state):
    return key, state.n


def pair(key, value, state):
    state.n += 1
    return key, state.n


def uneven(key, value, state):
    if value:
        return key, 1
    return key, 1, 2


def alone(key, value, state):
    row = (key, state.n)
    return row


def silent(key, value, state):
    state.n += 1


def both(key, value, state, emit):
    emit.row(key)
    return (key,)


def misspelt(k, v, s):
    s.n += 1
    s.m += v


def inner_returns(key, value, state):
    def least(a, b):
        return a if a < b else b

    state.n = least(state.n, value)


OUT = {"key": "i8", "n": "i8"}


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (generator, {"output": OUT}, "generator uses `yield`, which compiled folds cannot: it would work on copies"),
        (delegating, {"output": OUT}, "delegating uses `yield`, which compiled folds cannot"),
        (
            stranger,
            {},
            "stranger has the parameter colour: a fold's parameters are among time, key, value, state, emit",
        ),
        (nothing_declared, {}, "nothing_declared returns rows, and declares no output: say output={'name': 'i8', ...}"),
        (
            pair,
            {"output": {"a": "i8", "b": "i8", "c": "i8"}},
            "pair returns 2 values, and declares an output of 3: a, b, c",
        ),
        (pair, {"output": {"a": "i8"}}, "pair returns 2 values, and declares an output of 1: a"),
        (uneven, {"output": OUT}, "uneven returns 2 or 3 values, and declares an output of 2: key, n"),
        (alone, {"output": OUT}, "alone must return a tuple of 2 values: key, n"),
        (silent, {"output": OUT}, "silent declares an output, and neither returns rows nor has a parameter `emit`"),
        (both, {"output": {"key": "i8"}}, "both has `emit`, and returns a row as well: give rows one way"),
        (silent, {"forget": "gone"}, "silent: forget='gone' is not a field of its state"),
        (silent, {"values": {"a": "spam"}}, "silent: values 'a': 'spam' is not a type of numbers"),
        (silent, {"pending": {"a": "U3"}}, "silent: pending 'a' is <U3: only integers, floats and booleans"),
        (pair, {"output": {"a b": "i8"}}, "pair: output: 'a b' cannot be a name"),
        (silent, {"state": {"n": "O"}}, "silent: state 'n' is object: only integers, floats and booleans"),
        (silent, {"state": 5}, "silent: state is a mapping of names to types such as {'count': 'i8'}, not 5"),
        (lambda key, value, state: None, {}, "<lambda> must be written with def"),
        (len, {}, "a fold is a plain function, not <built-in function len>"),
        (5, {}, "a fold is a plain function, not 5"),
        (eval("lambda k, v, s: None"), {}, "the source of <lambda> cannot be read, which compiling needs"),
    ],
)
def test_what_a_fold_cannot_be(function: Any, options: dict[str, Any], message: str) -> None:
    for compiled in (True, False):
        with pytest.raises(FoldError, match=re.escape(message)):
            fold(function, compiled=compiled, **{"state": N, **options})


def test_a_field_that_the_state_does_not_have_is_named_with_its_line() -> None:
    line = misspelt.__code__.co_firstlineno + 2
    with pytest.raises(FoldError, match=rf"misspelt, .*test_fold_errors.py, line {line}: the state has no field 'm'"):
        fold(misspelt, state=N)


def test_a_fold_is_a_function_still() -> None:
    class Record:
        n = 1

    record = Record()
    assert fold(pair, state=N, output=OUT)(7, 0, record) == (7, 2) and record.n == 2
    made = fold(inner_returns, state=N)  # what functions inside of it return is their business
    assert made.returns == "nothing" and made.name == "inner_returns"
    assert fold(state=N)(silent).compiled and not fold(state=N, compiled=False)(silent).compiled


def operator(*sides: Any, due: Any = None, dense: Any = None) -> FoldStore:
    return FoldStore("the operator", [Side("k", value, used) for value, used in sides], due, 4, dense)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: operator(("v", silent)),
            "the operator: columns need a fold made with megaphone.fold(...), not <function",
        ),
        (lambda: operator(("v", several), ("v", crossing)), "several and crossing declare different state"),
        (
            lambda: operator(
                ("v", TWO), ("v", fold(silent, state=N)), ("v", fold(pair, state=N, output={"a": "i8", "b": "i8"}))
            ),
            "the operator: count and pair declare different output",
        ),
        (
            lambda: operator(("v", split)),
            "split post-dates records, and the operator has no fold for them: say due=...",
        ),
        (
            lambda: operator(("v", fold(silent, state=N, create=False)), dense=Dense(5)),
            "silent says create=False, and dense keys always exist",
        ),
        (
            lambda: operator((None, crossing)),
            "crossing has a parameter `value`, and the operator names no column for it",
        ),
        (
            lambda: operator(("w", several)),
            "several declares the type of 'price', which is not among its value columns",
        ),
        (lambda: operator((["amount", "_p"], fold(silent, state=N))), "'_p' cannot be an attribute of `value`: rename"),
        (lambda: operator((["a", "a"], fold(silent, state=N))), "'a' cannot be an attribute of `value`: rename"),
        (lambda: operator((["class", "a"], fold(silent, state=N))), "'class' cannot be an attribute of `value`"),
    ],
)
def test_what_folds_cannot_be_together(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConstructionError, match=re.escape(message)):
        build()


def test_what_is_due_has_the_types_that_were_post_dated() -> None:
    other = fold(gather.function, state=gather.state, output=dict(gather.output), values={"part": "i8"}, forget="over")
    with pytest.raises(FoldError, match="gather declares other types of values than `pending` has: leave its values="):
        FoldStore("x", [Side("k", "v", split.without_compiling())], other.without_compiling(), 4, None)


# What numba finds out: each costs a part of a compilation


def attribute(key, value, state):
    state.n += 1
    state.n += value.colour


def helper(x):
    return x.nothing


def through_a_helper(key, value, state):
    state.n += 1

    state.n += helper(value)


def text(key, value, state):
    state.n += 1
    state.n = value + "x"


def too_many(key, value, state, emit):
    state.n += 1
    emit.row(key, state.n, value)


def with_a_file(key, value, state):
    state.n += 1
    with open("file") as file:
        state.n += len(file.read())


def keeps_an_error(key, value, state):
    try:
        state.n += 1
    except ValueError as error:
        state.n = error


def no_such_function(key, value, state):
    state.n += 1
    state.n = math.sqroot(value)


def test_half_precision_is_refused() -> None:
    with pytest.raises(FoldError, match="state 'n' is float16, with which nothing can be computed: say 'f4'"):
        operator(("v", fold(text, state={"n": "f2"})))


@pytest.mark.parametrize(
    ("function", "line", "reason"),
    [
        (with_a_file, 2, "construct is not supported"),
        (keeps_an_error, 3, "Exception object cannot be stored into variable (error)"),
        (no_such_function, 2, "module 'math' has no attribute 'sqroot'"),
        (attribute, 2, "Unknown attribute 'colour' of type int64"),
        (through_a_helper, 3, "Unknown attribute 'nothing' of type int64"),
        (text, 2, "No implementation of function Function(<built-in function add>) found for signature: add(int64, "),
        (too_many, 2, "a row of 2 values is expected here, and 3 were given"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_cannot_be_compiled_is_named_with_its_line_and_what_to_do(function: Any, line: int, reason: str) -> None:
    number = function.__code__.co_firstlineno + line
    output = OUT if function is too_many else None
    with pytest.raises(FoldError) as caught:
        operator(("v", fold(function, state=N, output=output)))
    message = str(caught.value)
    assert (
        f"{function.__name__} cannot be compiled: " in message and f"test_fold_errors.py, line {number}: `" in message
    )
    assert reason in message and "compiled=False runs the same function uncompiled" in message
    operator(("v", fold(function, state=N, output=output, compiled=False)))  # nobody looks before it runs
