"""Folds: what a user writes for one record, and how it is checked before anything runs.

A fold is a plain Python function over scalars and a state record. Its parameters say what it wants, by their names:

- `key`, `value`: the record. With several value columns `value` has them as attributes. Integers are signed 64-bit
  ones.
- `state`: the key's state, whose fields are read and written; all zero for a new key.
- `time`: the time at which it runs.
- `emit`: `emit.row(a, b)` gives a row of output, as often as called. Without it, what is returned is the row, None no
  row.
- `later`: `later.at(time, a, b)` post-dates a record of this key: the operator's `due` fold gets it then.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, overload

import numpy as np

from dataflow.columns.batch import Columns
from dataflow.columns.schema import Schema, declared, state_dtype, units, wide, zones
from dataflow.compiled import ahead
from dataflow.errors import ConstructionError
from dataflow.state.values import Value

Function: TypeAlias = Callable[..., object]
"""What a user writes, with any of the parameters above."""
PARAMETERS = ("time", "key", "value", "state", "emit", "later")
_PLAIN = ("key", "value", "state")
LAST_SEEN = "last_seen"
"""A field of the state of folds with a `ttl`: one after the time of the key's last record; 0 for a new key."""

SPELLED = "spelled_"
"""Fields of the state of folds whose keys are spelled out: `spelled_0` and so on, all zero for a new key."""
KEY = "key"
"""The type of a column of output that is the key itself, whatever that is."""

ahead.expect(
    __name__,
    "dataflow.state.stores.fold_store",
    "dataflow.state.folds.driver",
    "dataflow.state.folds.compiling",
    "dataflow.columns.scatter",
)

Upgrade: TypeAlias = Callable[[Columns], Mapping[str, object]]
"""From the columns of saved state (the key and its old fields) to those of the state that there is now."""


class FoldError(ConstructionError):
    """A fold that cannot be used as it is written."""


@dataclass(frozen=True, eq=False)
class Fold:
    """A fold with its types. Made by `fold`."""

    function: Function
    state: Schema
    output: dict[str, np.dtype[np.generic]]
    values: dict[str, np.dtype[np.generic]] | None  # None: every value column is int64
    pending: dict[str, np.dtype[np.generic]]
    forget: str | None
    create: bool
    compiled: bool
    units: dict[str, str] = field(default_factory=dict)  # of values that are dates, moments or time spans
    zones: dict[str, str] = field(default_factory=dict)  # of columns of the output
    upgrade: Upgrade | None = None  # of state that was saved with other fields
    ttl: int | None = None  # a key without a record for so long counts as new
    key_outputs: tuple[str, ...] = ()  # columns of the output that are the key itself
    spelled: int = 0  # in how many words keys are spelled out in the state
    parameters: tuple[str, ...] = field(init=False)
    returns: str = field(init=False)  # "rows": tuples; "value": the one column; "nothing"
    optional: bool = field(init=False)  # whether it may return None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", _parameters(self.function))
        returns, optional, width = _returns(self.function)
        _check_fields(self.function, self.parameters, self.state)
        if "emit" in self.parameters and returns != "nothing":
            raise FoldError(f"{self.name} has `emit`, and returns a row as well: give rows one way")
        if returns != "nothing" and not self.output:
            raise FoldError(f"{self.name} returns rows, and declares no output: say output={{'name': 'i8', ...}}")
        if returns == "nothing" and self.output and "emit" not in self.parameters:
            raise FoldError(f"{self.name} declares an output, and neither returns rows nor has a parameter `emit`")
        if returns == "value" and len(self.output) != 1:
            raise FoldError(f"{self.name} must return a tuple of {len(self.output)} values: {', '.join(self.output)}")
        if returns == "rows" and width != {len(self.output)}:
            raise FoldError(
                f"{self.name} returns {' or '.join(map(str, sorted(width)))} values, and declares an output of "
                f"{len(self.output)}: {', '.join(self.output)}"
            )
        if self.forget is not None and self.forget not in self.state:
            raise FoldError(f"{self.name}: forget={self.forget!r} is not a field of its state")
        object.__setattr__(self, "returns", returns)
        object.__setattr__(self, "optional", optional)

    @property
    def name(self) -> str:
        """What the function is called."""
        return getattr(self.function, "__qualname__", repr(self.function)).rsplit(".", 1)[-1]

    @property
    def is_one_for_one(self) -> bool:
        """Whether each record gives one row, whatever the time: then those of several times can be applied at once."""
        gives_one = self.returns != "nothing" and not self.optional and self.create and self.ttl is None
        return gives_one and "time" not in self.parameters and "later" not in self.parameters

    def __call__(self, *args: Value) -> Value:
        """The function itself, for tests."""
        return self.function(*args)

    def row_dtype(self, tagged: bool) -> np.dtype[np.generic]:
        """How a row of its state lies in memory."""
        return state_dtype(self.state, tagged)

    def same_state(self, other: Fold) -> bool:
        """Whether two folds may share one table."""
        return self.row_dtype(True) == other.row_dtype(True)

    def expiring(self, ttl: int) -> Fold:
        """The same fold, for keys that are forgotten when they have had no record for so long."""
        if LAST_SEEN in self.state:
            raise FoldError(f"{self.name} has {LAST_SEEN!r} in its state, which ttl= wants for itself: rename it")
        return replace(self, state={**self.state, LAST_SEEN: "i8"}, ttl=ttl)

    def spelling(self, words: int) -> Fold:
        """The same fold, for keys that are spelled out in so many words: see `dataflow.columns.spelling`."""
        fields = {f"{SPELLED}{number}": "u8" for number in range(words)}
        if set(fields) & set(self.state):
            raise FoldError(f"{self.name} has {SPELLED}0 in its state, which the key wants for itself: rename it")
        return replace(self, state={**self.state, **fields}, spelled=words)

    def without_compiling(self) -> Fold:
        """The same fold, uncompiled."""
        return replace(self, compiled=False)


@overload
def fold(
    function: None = None,
    *,
    state: Schema,
    output: Schema | None = None,
    values: Schema | str | None = None,
    pending: Schema | None = None,
    forget: str | None = None,
    create: bool = True,
    compiled: bool = True,
    upgrade: Upgrade | None = None,
) -> Callable[[Function], Fold]: ...


@overload
def fold(
    function: Function,
    *,
    state: Schema,
    output: Schema | None = None,
    values: Schema | str | None = None,
    pending: Schema | None = None,
    forget: str | None = None,
    create: bool = True,
    compiled: bool = True,
    upgrade: Upgrade | None = None,
) -> Fold: ...


def fold(
    function: Function | None = None,
    *,
    state: Schema,
    output: Schema | None = None,
    values: Schema | str | None = None,
    pending: Schema | None = None,
    forget: str | None = None,
    create: bool = True,
    compiled: bool = True,
    upgrade: Upgrade | None = None,
) -> Fold | Callable[[Function], Fold]:
    """Makes a function a fold. A decorator: `@fold(state={"count": "i8"}, output={"key": "u8", "count": "i8"})`.

    `values`: the types of value columns that are not int64. Moments and time spans are integers in a fold: nanoseconds,
    or the unit of a type such as "M8[ms]". In `output` such a type makes moments of integers, and the type "key" the
    key itself, a string for instance, of what the fold gives as `key`.
    `pending`: the columns of records that `later` post-dates.
    `forget`: a field of the state; a key for which it is true after the fold is forgotten. `create=False`: records of
    keys that have no state are passed over. `compiled=False` runs the function as it stands, for debugging.
    `upgrade`: for state that a snapshot has with other fields, a function from its columns (`key` and the old fields)
    to columns with `key` and the fields of `state`.
    """
    if function is None:
        return lambda given: fold(
            given, state=state, output=output, values=values, pending=pending, forget=forget, create=create,
            compiled=compiled, upgrade=upgrade,
        )  # fmt: skip
    if not inspect.isfunction(function):
        raise FoldError(f"a fold is a plain function, not {function!r}")
    try:
        state_dtype(state, True)
        kinds = {"value": values} if isinstance(values, str) else values
        key_outputs = tuple(name for name, kind in (output or {}).items() if isinstance(kind, str) and kind == KEY)
        return Fold(
            function,
            dict(state),
            declared({} if output is None else {**output, **dict.fromkeys(key_outputs, "i8")}, "output"),
            None if kinds is None else wide(kinds, "values"),
            wide(pending, "pending"),
            forget,
            create,
            compiled,
            units(kinds),
            zones(output),
            upgrade,
            key_outputs=key_outputs,
        )
    except (TypeError, ValueError) as error:
        raise FoldError(f"{function.__name__}: {error}") from None


def _parameters(function: Function) -> tuple[str, ...]:
    names = tuple(inspect.signature(function).parameters)
    if all(name in PARAMETERS for name in names):
        return names
    if len(names) == 3 and not set(names) & set(PARAMETERS):
        return _PLAIN  # (k, v, s): the usual three, called something else
    strange = [name for name in names if name not in PARAMETERS]
    raise FoldError(
        f"{function.__name__} has the parameter{'s' if len(strange) > 1 else ''} {', '.join(strange)}: a fold's "
        f"parameters are among {', '.join(PARAMETERS)}"
    )


def _check_fields(function: Function, parameters: tuple[str, ...], state: Schema) -> None:
    """FoldError if a function uses a field that its state does not have."""
    if "state" not in parameters:
        return
    called = tuple(inspect.signature(function).parameters)[parameters.index("state")]
    used = [node for node in ast.walk(definition(function)) if isinstance(node, ast.Attribute)]
    for node in used:
        if isinstance(node.value, ast.Name) and node.value.id == called and node.attr not in state:
            line = inspect.getsourcelines(function)[1] + node.lineno - 1
            raise FoldError(
                f"{function.__name__}, {inspect.getsourcefile(function)}, line {line}: the state has no field "
                f"{node.attr!r}; it has {', '.join(state) or 'none'}: say state={{{node.attr!r}: 'i8', ...}}"
            )


def _returns(function: Function) -> tuple[str, bool, set[int]]:
    """What a function returns ("rows", "value" or "nothing"), whether it may return None, and how many values."""
    tree = definition(function)
    finds = _Returns()
    for statement in tree.body:
        finds.visit(statement)
    if finds.generator:
        raise FoldError(
            f"{function.__name__} uses `yield`, which compiled folds cannot: it would work on copies of the state. "
            "Take a parameter `emit` and call emit.row(...)"
        )
    given = [node for node in finds.values if not _is_none(node)]
    if not given:
        return "nothing", True, set()
    optional = len(given) < len(finds.values) or not isinstance(tree.body[-1], ast.Return)
    rows = [node for node in given if isinstance(node, ast.Tuple)]
    return ("rows" if len(rows) == len(given) else "value"), optional, {len(node.elts) for node in rows}


class _Returns(ast.NodeVisitor):
    """The values of the return statements of a function, not of functions inside it."""

    def __init__(self) -> None:
        self.values: list[ast.expr | None] = []
        self.generator = False

    def visit_Return(self, node: ast.Return) -> None:
        """One more."""
        if isinstance(node.value, ast.IfExp):
            self.values += [node.value.body, node.value.orelse]
        else:
            self.values.append(node.value)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Another function: its returns are its own."""

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Another function."""

    def visit_Yield(self, node: ast.Yield) -> None:
        """A generator."""
        self.generator = True

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        """A generator as well."""
        self.generator = True


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def definition(function: Function) -> ast.FunctionDef:
    """The syntax tree of a function; FoldError if there is no source to read."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise FoldError(
            f"the source of {function.__name__} cannot be read, which compiling needs: define it in a file"
        ) from None
    try:
        node: ast.stmt | None = ast.parse(source).body[0]
    except SyntaxError:  # the line of a lambda, in the middle of something
        node = None
    if not isinstance(node, ast.FunctionDef):
        raise FoldError(f"{function.__name__} must be written with def")
    return node
