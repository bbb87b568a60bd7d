"""Saved state, read without the program that saved it: from a store's description and its pieces to what is in it.

For those who look into snapshots, and for state that is converted to other fields: see docs/internals/recovery.md. The
stores here hold state and show it; nothing can be applied to them. Objects of a program's own classes need these
classes: their modules must be imported before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np

from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.state.pieces import Words, unpack
from dataflow.state.store import BinView, Key, Store
from dataflow.state.stores.column_store import ColumnStore
from dataflow.state.stores.join_store import JoinStore
from dataflow.state.stores.row_store import RowStore
from dataflow.state.stores.with_pending import WithPending
from dataflow.state.tables.pending import Pending
from dataflow.state.tables.table import Dense, make_table
from dataflow.state.values import Record, State
from dataflow.time.order import Time

_ARRAY = re.compile(r"\('([^']+)', \(([0-9]{1,9}),\)\)")
_DENSE = re.compile(r"dense\(([0-9]{1,13})\)")


class SavedState:
    """The state of an operator, as it was saved. ValueError if the description or a piece cannot be right."""

    def __init__(self, description: Mapping[str, str]) -> None:
        try:
            self._home = _make_store(description, apart=False)
            self._apart = _make_store(description, apart=True)
        except KeyError as error:
            raise ValueError(f"the description of the state does not say {error.args[0]!r}") from None
        except TypeError as error:
            raise ValueError(str(error)) from None

    def put(self, words: Words) -> None:
        """Takes packed pieces in, as `Durable.put` does."""
        for piece in unpack(words):
            apart = piece.apart and isinstance(self._home, ColumnStore)  # rows have one store for both
            try:
                (self._apart if apart else self._home).put(piece)
            except (TypeError, AssertionError) as error:
                raise ValueError(f"a piece of bin {piece.bin}: {error}") from None

    def views(self) -> Iterator[BinView]:
        """What is in each bin that has something."""
        for bin in self._home.occupied().tolist():
            yield self._home.view(bin)

    def table(self) -> tuple[Columns, Words | None]:
        """All state in bins as columns, the key and the fields; and the post-dated records, as rows of words. For state
        of folds."""
        if not isinstance(self._home, _SavedColumns):
            raise ValueError("only the state of folds has fields that can be converted")
        pending = self._home.pending
        if pending is None:
            return self._home.table.read(), None
        times, keys, values = pending.due_all()
        return self._home.table.read(), pending.rows_of(times, keys, values)

    def apart(self) -> tuple[dict[Key, State], list[tuple[Time, Record]]]:
        """The keys that live apart from their bins, with their state; and their post-dated records."""
        if isinstance(self._apart, ColumnStore):
            pending = [each for bin in self._apart.occupied().tolist() for each in self._apart.view(bin).pending]
            return self._apart.view_all(), pending
        assert isinstance(self._home, RowStore)
        keys = self._home.held.apart_keys
        looks = [self._home.held.look((key,)) for key in keys]
        return dict(self._home.view_apart()), [each for _, pending in looks for each in pending]


def pieces_apart(share: object) -> list[Words]:
    """The packed pieces of keys that live apart from their bins, from an operator's plain share of a snapshot (see
    `dataflow.state.kept`). ValueError if it is none."""
    match share:
        case [_, list(pieces)] if all(type(piece) is bytes and len(piece) % 8 == 0 for piece in pieces):
            return [np.frombuffer(piece, np.uint64).copy() for piece in pieces]  # compiled code wants to own it
    raise ValueError("the plain share of an operator is not what operators give")


def view_saved(description: Mapping[str, str], pieces: Iterable[Words]) -> Iterator[BinView]:
    """What is in each bin of saved state, from the operator's description and all of its pieces, in any order."""
    saved = SavedState(description)
    for piece in pieces:
        saved.put(piece)
    return saved.views()


class _SavedColumns(WithPending):
    """A table and post-dated records, of no fold."""

    def __init__(self, description: Mapping[str, str], bins: int, dense: Dense | None) -> None:
        self.name = "saved state"
        self.table = make_table(bins, {name: _field(kind) for name, kind in _named("field", description)}, dense)
        kinds = {name: np.dtype(_scalar(kind)) for name, kind in _named("pending", description)}
        self.pending = Pending(bins, kinds) if description["parts"] == "2" else None

    def run(self, time: Time, batches: Sequence[Sequence[Columns]]) -> Sequence[Batch]:
        raise AssertionError("saved state is for looking at")


def _make_store(description: Mapping[str, str], apart: bool) -> Store[Columns] | RowStore:
    kind, bins = description["store"], _bins(description["shards"])
    if kind == "rows":
        return RowStore("saved state", bins, (_no_function,), _no_function, _no_function, _no_function)
    if kind == "JoinStore":
        columns = [_names(description[f"columns {side}"]) for side in ("left", "right")]
        return JoinStore("saved state", ("key", "key"), columns, None, bins)
    if kind not in ("FoldStore", "BatchStore"):
        raise ValueError(f"this version of the library knows no store {kind!r}")
    dense = _DENSE.fullmatch(description["keys"])
    return _SavedColumns(description, bins, Dense(int(dense[1])) if dense and not apart else None)


def _no_function(*_: object) -> NoReturn:
    raise AssertionError("saved state is for looking at")


def _bins(text: str) -> int:
    if not re.fullmatch("[0-9]{1,8}", text):
        raise ValueError(f"{text!r} is no number of shards")
    return int(text)


def _named(what: str, description: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, kind in description.items():
        if name.startswith(f"{what} "):
            yield name.removeprefix(f"{what} "), kind


def _field(kind: str) -> object:
    """The type of a field of state, as a schema has it: a number, or an array of numbers."""
    array = _ARRAY.fullmatch(kind)
    return _scalar(kind) if array is None else (_scalar(array[1]), int(array[2]))


def _scalar(kind: str) -> str:
    if not re.fullmatch("[<>|=]?[a-z]{1,7}[0-9]{1,2}|bool", kind):
        raise ValueError(f"{kind!r} is no type of a field")
    return kind


def _names(text: str) -> list[str]:
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{text!r} are no names of columns")
    return names
