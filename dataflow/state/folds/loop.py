"""The text of the compiled loop that applies a fold to each record of a batch."""

from __future__ import annotations

import numpy as np

from dataflow.columns.schema import widest
from dataflow.state.folds.fold import LAST_SEEN, SPELLED, Fold

# Names that stand beside the user's own in one module begin with _df_.
_HEAD = """
from collections import namedtuple as _df_namedtuple
import numpy as np
from numba import njit
from dataflow.state.folds.emitter import EmittedRows as _df_Rows, certain as _df_certain
from dataflow.state.memory.allocation import (
    AT as _df_AT, DEEP as _df_DEEP, FIRST as _df_FIRST, FULL as _df_FULL, HOME as _df_HOME, RECORDS as _df_RECORDS,
    TURN as _df_TURN,
)
from dataflow.state.tables.blocks import (
    AHEAD as _df_AHEAD, BLOCK as _df_BLOCK, NEAR as _df_NEAR, fetch_row as _df_fetch_row, weight_of as _df_weight_of,
)
from dataflow.state.tables.dense_kernels import (
    count_dense as _df_count_dense, has_bit as _df_has_bit, home_of as _df_home_of,
)
from dataflow.state.tables.hash_kernels import (
    TOP as _df_TOP, fetch_hashed as _df_fetch_hashed, find as _df_find, find_block as _df_find_block,
    find_or_insert as _df_find_or_insert, make_block as _df_make_block, remove as _df_remove,
)
"""
SAME_HASH = "two keys have the same hash of 64 bits, so they cannot both have state here: change one of them"
_FIRST_ROWS = 1024  # words that emitters begin with


def head(names: tuple[str, ...]) -> str:
    """What stands before the fold: imports, and the type of its `value` where that has several columns."""
    return _HEAD + (f'_df_Value = _df_namedtuple("Value", {list(names)!r})\n' if names else "")


def loop(fold: Fold, names: tuple[str, ...], alone: bool, dense: bool, spelled: int = 0) -> str:
    """The function `_drive` over a table: (rows given back, words emitted, words post-dated). `spelled`: in how many
    words records say what their key is.

    Rows are fetched ahead of their use, so that the processor does not wait for memory at each record.
    """
    values = [f"_v{i}" for i in range(len(names))]
    outputs = [f"_o{i}" for i in range(len(fold.output))]
    given = ["_entries", "_words", "_meta", "_ctl", "_homes", "_stride", "_shift", "time", "_keys", "_signed"]
    given += [*values, *(f"_n{number}" for number in range(spelled)), *outputs]
    body = [
        "_i = np.uint64(_start + _j)",
        "_ctl[_df_AT] = _i",
        *_find(fold, dense),
        "state = _entries[np.uint64(_row)]",
        *_expire(fold, dense),
        *_spell(spelled),
        "key = _signed[_i]",
        *_value(values, alone),
        *(["later.key = _keys[_i]"] if "later" in fold.parameters else []),
        *_call(fold, outputs),
        *([f"state.{LAST_SEEN} = time + 1"] if fold.ttl is not None else []),
        *_forget(fold, dense),
    ]
    lines = [
        "@njit",
        f"def _drive({', '.join(given)}):",
        "    _tags, _rows = np.empty(_df_BLOCK, np.uint64), np.empty(_df_BLOCK, np.int64)",
        "    _count, _last = np.uint64(0), np.uint64(_keys.size - 1)",
        "    _home, _turn, _bins = np.uint64(_ctl[_df_HOME]), np.uint64(_ctl[_df_TURN]), np.uint64(_meta.shape[0])",
        "    _deep = np.uint64(_ctl[_df_DEEP])",
        *_emitters(fold),
        "    for _start in range(0, _keys.size, _df_BLOCK):",
        "        _size = min(_keys.size - _start, _df_BLOCK)",
        *(f"        {line}" for line in _block(fold, dense)),
        "        for _j in range(_size):",
        *(f"            {line}" for line in body),
        *(["    _emitted = emit.words[:emit.used]"] if "emit" in fold.parameters else []),
        *(["    _later = later.words[:later.used]"] if "later" in fold.parameters else []),
        "    return np.int64(_count), _emitted, _later",
    ]
    return "\n".join(lines) + "\n"


def _emitters(fold: Fold) -> list[str]:
    lines = ["    _emitted = np.empty(0, np.uint64)", "    _later = np.empty(0, np.uint64)"]
    kinds: dict[str, list[np.dtype[np.generic]]] = {
        "emit": [widest(kind) for kind in fold.output.values()],
        "later": list(fold.pending.values()),
    }
    for name, columns in kinds.items():
        if name in fold.parameters:
            zeros = "".join(f"np.{kind.name}(0), " for kind in columns)
            start = f"np.empty({_FIRST_ROWS}, np.uint64)"
            lines.append(f"    {name} = _df_Rows({start}, np.int64(0), np.uint64(0), ({zeros}))")
    return lines


def _value(values: list[str], alone: bool) -> list[str]:
    if not values:
        return []
    columns = ", ".join(f"{value}[_i]" for value in values)
    return [f"value = {columns}" if alone else f"value = _df_Value({columns})"]


def _call(fold: Fold, outputs: list[str]) -> list[str]:
    call = f"_fold({', '.join(fold.parameters)})"
    if fold.returns == "nothing":
        return [call]
    alone = fold.returns == "value"
    stores = [f"{output}[_count] = _result{'' if alone else f'[{i}]'}" for i, output in enumerate(outputs)]
    if not fold.optional:
        return [f"_result = {call}", *stores, "_count += np.uint64(1)"]
    inside = [f"    {line}" for line in ("_result = _df_certain(_given)", *stores, "_count += np.uint64(1)")]
    return [f"_given = {call}", "if _given is not None:", *inside]


def _expire(fold: Fold, dense: bool) -> list[str]:
    """A key that has expired is as good as new: its fields are zero, all but the tag of the key."""
    if fold.ttl is None:
        return []
    return [
        f"if state.{LAST_SEEN} != 0 and time - state.{LAST_SEEN} >= {fold.ttl}:",
        f"    for _k in range({0 if dense else 1}, _stride):",
        "        _words[_row * _stride + _k] = np.uint64(0)",
    ]


def _spell(words: int) -> list[str]:
    """A new key is spelled out in its state; one that is there must be the same."""
    if not words:
        return []
    differs = " or ".join(f"state.{SPELLED}{number} != _n{number}[_i]" for number in range(words))
    return [
        f"if state.{SPELLED}0 == 0:",
        *(f"    state.{SPELLED}{number} = _n{number}[_i]" for number in range(words)),
        f"elif {differs}:",
        f"    raise ValueError({SAME_HASH!r})",
    ]


def _forget(fold: Fold, dense: bool) -> list[str]:
    if fold.forget is None:
        return []
    clear = ["for _k in range(_stride):", "    _words[_row * _stride + _k] = np.uint64(0)"]
    remove = ["_df_remove(_words, _meta, _ctl, _stride, _bin, _row)"]
    return [f"if state.{fold.forget}:", *(f"    {line}" for line in (clear if dense else remove))]


def _block(fold: Fold, dense: bool) -> list[str]:
    """What is done for a block of records at once."""
    weight = "_df_weight_of(_meta, _ctl)" if fold.create else "0"
    if dense:
        return [f"_weight = {weight}", "_df_count_dense(_meta, _keys, _start, _size, _weight)"]
    lines = [f"_df_fetch_hashed(_words, _meta, _stride, _shift, _deep, _keys, _start, _size, _tags, {weight})"]
    if fold.forget is None:
        lines.append("if not _df_find_block(_words, _meta, _stride, _shift + _deep, _tags, _size, _rows):")
        make = "_df_make_block(_words, _meta, _ctl, _stride, _shift, _tags, _size, _rows)"
        missing = [f"if not {make}:", "    return _df_FULL, _emitted, _later"] if fold.create else ["pass"]
        lines += [f"    {line}" for line in missing]
    return lines


def _find(fold: Fold, dense: bool) -> list[str]:
    """Where a record's state is. A fold that forgets moves rows, so there each is looked for when its turn comes.

    Where a record without state is passed over, it is counted here: it has not been applied.

    Rows of a dense table are fetched one by one, as many ahead as there are cache misses that a core waits for at once:
    memory stays busy while the fold works (blocks of 64 took a third longer), and to look a place up twice is cheaper
    than to keep it. All of it is text: a function that is given arrays counts references to them, for each record.
    """
    if dense:
        fetch = "_df_fetch_row(_words, np.int64(_place * np.uint64(_stride)))"
        ahead = [*_place("_keys[min(_i + _df_AHEAD, _last)]"), fetch]
        counting = ["if _weight == 1:", "    _meta[_bin, _df_RECORDS] += 1"]
        return [*ahead, *_place("_keys[_i]"), *counting, "_row = np.int64(_place)"]
    bin = ["_hashed = _tags[_j]", "_bin = np.int64(_hashed >> _shift)"]
    if fold.forget is None:
        found = ["_row = _rows[_j]"]
    elif fold.create:
        make = "_df_find_or_insert(_words, _meta, _ctl, _stride, _bin, _hashed | _df_TOP)"
        found = [*bin, f"_row = {make}", "if _row < 0:", "    return _df_FULL, _emitted, _later"]
    else:
        found = [*bin, "_row = _df_find(_words, _meta, _stride, _hashed >> (_shift + _deep), _hashed | _df_TOP)"]
    if fold.create:
        return found
    count = "_meta[np.uint64(_tags[_j] >> _shift), _df_RECORDS] += 1"
    return [*found, "if _row < 0:", "    continue", count]


def _place(key: str) -> list[str]:
    """The bin and the row of a dense key: bin = key mod bins, position = key div bins.

    With many bins, where each begins is a cache miss. A bit says of those at home that it need not be looked up.
    """
    return [
        f"_key = {key}",
        "_bin = _key & (_bins - np.uint64(1))",
        "if _bins > _df_NEAR and _df_has_bit(_homes[_bin >> np.uint64(6)], _bin):",
        "    _place = _df_home_of(_bins, _turn, _home, _bin)",
        "else:",
        "    _place = np.uint64(_meta[_bin, _df_FIRST])",
        "_place += _key >> _shift",
    ]
