"""Keys of compiled folds that are no single integer: strings, bytes, several columns.

A step before the operator spells each key out in a few words (`dataflow.columns.spelling`) and hashes these. From there
on the key is the hash, an integer as any other, and the spelling travels beside it; the table keeps it with the state
of the key. A column of output that is declared to be the "key" is put back into the columns that it came from.

What compiles is imported when it is first needed: programs whose keys are integers do not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dataflow.columns.batch import Columns
from dataflow.columns.column import Column, Words
from dataflow.errors import ConstructionError
from dataflow.state.folds.fold import SPELLED, Fold, FoldError
from dataflow.state.folds.loop import SAME_HASH
from dataflow.state.values import Key, Value

if TYPE_CHECKING:
    from dataflow.build.stream import Stream
    from dataflow.state.stores.fold_store import Side
    from dataflow.state.tables.table import Dense

WORD = "\0key"  # the column of hashes
MOST_COLUMNS = 7  # of a key: see `dataflow.columns.spelling`
EACH = 21  # bytes for each key column, where nobody says: of one column, three words


@dataclass(frozen=True, slots=True)
class Spelled:
    """Keys are spelled out, in at most so many bytes: those of strings, and eight for each column of anything else."""

    bytes: int

    def __post_init__(self) -> None:
        if type(self.bytes) is not int or not 1 <= self.bytes <= 1024:
            raise ValueError(f"keys are spelled out in 1 to 1,024 bytes, not {self.bytes!r}")


def column_of(number: int) -> str:
    """The column with a word of the spelling."""
    return f"{WORD} {number}"


def with_spelled_keys(
    streams: Sequence[Stream[Columns]],
    sides: Sequence[Side],
    due: Fold | None,
    keys: Dense | Spelled | None,
    name: str,
) -> tuple[Sequence[Stream[Columns]], Sequence[Side], Fold | None, Dense | None]:
    """The inputs and folds of an operator: as they are if its keys are integers, else with keys spelled out."""
    folds = [side.fold for side in sides] + ([due] if due is not None else [])
    several = any(not isinstance(side.key, str) for side in sides)
    wanted = isinstance(keys, Spelled) or several or any(getattr(each, "key_outputs", ()) for each in folds)
    if not wanted:
        assert not isinstance(keys, Spelled)
        return streams, sides, due, keys
    by = _checked(sides, due, keys, name)
    size = keys.bytes if isinstance(keys, Spelled) else EACH * len(by[0])
    words = -(-(2 + len(by[0]) + size) // 8)  # as `spelling.word_count` says
    made = [
        replace(side, key=WORD, fold=side.fold.spelling(words), spelled_by=names)
        for side, names in zip(sides, by, strict=True)
    ]
    spelt = [
        stream.columns.map(partial(_spelt, side, words, name), name=f"{name} (keys)")
        for stream, side in zip(streams, made, strict=True)
    ]
    return spelt, made, None if due is None else due.spelling(words), None


def _checked(sides: Sequence[Side], due: Fold | None, keys: Dense | Spelled | None, name: str) -> list[tuple[str, ...]]:
    """The key columns of each side; ConstructionError if they cannot be."""
    by = [(side.key,) if isinstance(side.key, str) else tuple(side.key) for side in sides]
    if keys is not None and not isinstance(keys, Spelled):
        raise ConstructionError(f"{name}: dense keys are integers: leave keys= out, or declare the key to be 'i8'")
    if any(not 1 <= len(names) <= MOST_COLUMNS or len(names) != len(by[0]) for names in by):
        raise ConstructionError(f"{name}: a key has 1 to {MOST_COLUMNS} columns, as many on both sides")
    folds = [*(side.fold for side in sides), *([due] if due is not None else [])]
    if other := [each for each in folds if not hasattr(each, "spelling")]:
        raise ConstructionError(f"{name}: columns need a fold made with megaphone.fold(...), not {other[0]!r}")
    forgets = any(each.forget is not None for each in folds)
    if due is not None and due.create and forgets and due.key_outputs:
        raise FoldError(
            f"{name}: {due.name} may be due for a key that was forgotten, and could not say which it was: say "
            "fold(..., create=False) there, which passes such records over"
        )
    return by


def _spelt(side: Side, words: int, name: str, batch: Columns) -> Columns:
    """What the operator needs of a batch."""
    from dataflow.columns import spelling

    spelt, hashes = spelling.spell_and_hash(batch, side.spelled_by, words, name)
    made: dict[str, Column] = {WORD: hashes}
    made |= {column_of(number): spelt[number] for number in range(words)}
    made |= {each: batch.column(each) for each in (*side.names, *side.order)}
    for carried, key in zip(side.carried, side.spelled_by, strict=bool(side.carried)):
        made[carried] = spelling.as_spelt(batch.column(key), f"{name}: the key {key!r}")
    return Columns.trusted(made, len(batch))


class SpelledJoin:
    """A join by keys that are spelled out: what stands before its inputs and behind its output. The spellings are among
    the columns that the join keeps."""

    def __init__(
        self,
        name: str,
        by: Sequence[str | Sequence[str]],
        values: Sequence[Sequence[str]],
        keys: Spelled | None,
    ) -> None:
        self._name = name
        self._by = [(each,) if isinstance(each, str) else tuple(each) for each in by]
        if any(not 1 <= len(names) <= MOST_COLUMNS or len(names) != len(self._by[0]) for names in self._by):
            raise ConstructionError(f"{name}: a key has 1 to {MOST_COLUMNS} columns, as many on both sides")
        if twice := set(self._by[0]) & {each for columns in values for each in columns} if len(self._by[0]) > 1 else ():
            raise ConstructionError(f"{name}: {min(twice)!r} is a column of the key: it comes out without value=")
        size = EACH * len(self._by[0]) if keys is None else keys.bytes
        self._words = -(-(2 + len(self._by[0]) + size) // 8)
        self._given = [tuple(columns) for columns in values]
        self.values = [(*columns, *self._spelling(side)) for side, columns in enumerate(values)]

    def _spelling(self, side: int) -> list[str]:
        return [f"{WORD} {side} {number}" for number in range(self._words)]

    def before(self, streams: Sequence[Stream[Columns]]) -> list[Stream[Columns]]:
        """The inputs as the join wants them, by the key `WORD`."""
        return [
            stream.columns.map(partial(self._spelt, side), name=f"{self._name} (keys)")
            for side, stream in enumerate(streams)
        ]

    def _spelt(self, side: int, batch: Columns) -> Columns:
        from dataflow.columns import spelling

        spelt, hashes = spelling.spell_and_hash(batch, self._by[side], self._words, self._name)
        made: dict[str, Column] = {WORD: hashes}
        made |= dict(zip(self._spelling(side), spelt, strict=True))
        return Columns.trusted({**made, **{each: batch.column(each) for each in self._given[side]}}, len(batch))

    def behind(self, stream: Stream[Columns]) -> Stream[Columns]:
        """What came out, with the key itself."""
        return stream.columns.map(self._named, name=f"{self._name} (pairs)")

    def _named(self, batch: Columns) -> Columns:
        from dataflow.columns.spelling import unspell

        left, right = ([batch[name] for name in self._spelling(side)] for side in (0, 1))
        if not all(np.array_equal(ours, theirs) for ours, theirs in zip(left, right, strict=True)):
            raise ValueError(f"{self._name}: {SAME_HASH}")
        made = unspell(np.stack(left), len(self._by[0]))
        names = ("key",) if len(made) == 1 else self._by[0]
        values = {each: batch.column(each) for each in (*self._given[0], *self._given[1])}
        return Columns.trusted({**dict(zip(names, made, strict=True)), **values}, len(batch))


def word_of(key: Value, words: int, what: str) -> Words:
    """The hash of one key, a value or a tuple of several, as an array of one."""
    values = key if isinstance(key, tuple) else (key,)
    names = [str(number) for number in range(len(values))]
    from dataflow.columns import spelling

    batch = Columns({name: [value] for name, value in zip(names, values, strict=True)})
    return spelling.hash_spelt(spelling.spell(batch, names, words, what))


def name_keys(
    out: Columns, fold: Fold, by: Sequence[str], keys: Words, spelt: Sequence[Words], carried: Sequence[Column]
) -> Columns:
    """What a fold gave, with the keys themselves in the place of their hashes. `keys`, `spelt` and `carried` are those
    of the records: a fold gives no other."""
    from dataflow.columns.spelling import unspell

    columns: dict[str, Column] = {}
    for name in out.names:
        if name not in fold.key_outputs:
            columns[name] = out.column(name)
            continue
        given = out[name].view(np.uint64)
        same = len(given) == len(keys) and np.array_equal(given, keys)
        made = carried if same and carried else unspell(_of(given, keys, spelt, fold, same), len(by))
        columns |= {name: made[0]} if len(by) == 1 else dict(zip(by, made, strict=True))
    return Columns.trusted(columns, len(out))


def _of(given: Words, keys: Words, spelt: Sequence[Words], fold: Fold, same: bool) -> Words:
    if same:
        whole = spelt[0].base
        if isinstance(whole, np.ndarray) and whole.shape == (len(spelt), len(keys)) and _is_of(spelt, whole):
            return whole
        return np.stack(spelt)
    from dataflow.columns.spelling import find_rows

    rows = np.empty(len(given), np.int64)
    find_rows(keys, np.ascontiguousarray(given), rows)
    if len(rows) and rows.min() < 0:
        wrong = given[rows.argmin()]
        raise ValueError(f"{fold.name} gives {wrong} as its key: give the `key` that the fold was called with")
    return np.stack([words[rows] for words in spelt])


def _is_of(spelt: Sequence[Words], whole: Words) -> bool:
    """Whether words are the rows of an array, as they were made: then nothing need be copied."""
    return whole.dtype == np.uint64 and all(
        words.base is whole and words.__array_interface__["data"] == row.__array_interface__["data"]
        for words, row in zip(spelt, whole, strict=True)
    )


def fields_of(words: int) -> list[str]:
    """The fields of the state that spell the key out."""
    return [f"{SPELLED}{number}" for number in range(words)]


def keys_of(spelt: Words) -> list[Key]:
    """Keys as people write them: values, or tuples of several."""
    if not spelt.shape[1]:
        return []
    count = int(spelt[0, 0]) & 0xFF
    from dataflow.columns.spelling import unspell

    columns = [f"{number}" for number in range(count)]
    rows = Columns.trusted(dict(zip(columns, unspell(spelt, count), strict=True)), spelt.shape[1]).rows()
    return [row[0] if count == 1 else row for row in rows]
