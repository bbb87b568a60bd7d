"""Keys that are spelled out: any key columns (strings, bytes, integers, booleans, dates, moments, several of them) as a
few words of 64 bits, which say it all, and a hash of these.

Tables are by one word, the hash. Next to the state they keep the spelling: so a key comes out as it came in, and two
keys with one hash are found out, never mixed up.

A spelling is an array (words, rows). The first byte of a row says how many columns there are, the second which of them
are bytes and not strings. A byte for each column follows, seven at most: what it is (`_NULL` and so on) or, of a text,
its length and one. Then come the values, one behind the other: the bytes of texts, eight bytes of all else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.base import BaseContext
from numba.core.types.abstract import Type
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from dataflow.columns.arrow import type_name
from dataflow.columns.batch import Columns
from dataflow.columns.column import Array, Column, Integers, Words
from dataflow.columns.hashing import mix
from dataflow.columns.instants import counts
from dataflow.columns.zones import with_zone, zone_of
from dataflow.compiled.intrinsics import Definition
from dataflow.compiled.kernel import kernel
from dataflow.values import Value

Bytes = NDArray[np.uint8]

MOST_COLUMNS = 7
MOST_BYTES = 200  # of one text: lengths share a byte with the codes of other kinds
_NULL, _BOOLEAN, _INTEGER, _DATE, _MOMENT, _ZONED, _SPAN = range(MOST_BYTES + 2, MOST_BYTES + 9)
_KINDS = {_BOOLEAN: "?", _INTEGER: "i8", _DATE: "M8[D]", _MOMENT: "M8[ns]", _ZONED: "M8[ns]", _SPAN: "m8[ns]"}

_SPELT = types.uint64[:, ::1]
_WORDS = types.Array(types.uint64, 1, "C", readonly=True)
_TEXT = types.Array(types.uint8, 1, "C", readonly=True)
_FILL = types.int64[::1]
_NUMBERS = types.Array(types.int64, 1, "C", readonly=True)
_8, _64 = np.uint64(8), np.uint64(64)


def _load(typingctx: object, text: Type, index: Type) -> Definition:
    """Eight bytes as a word, wherever they begin."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(text, types.int64), generate


load_word = cast(Callable[[Bytes, int], np.uint64], intrinsic(_load))  # as compiled code calls it


class Unspellable(ValueError):
    """A key that is too long for its place."""


def word_count(size: int, columns: int) -> int:
    """How many words a spelling has, of so many bytes in so many columns.

    >>> word_count(21, 1), word_count(22, 1)
    (3, 4)
    """
    return -(-(2 + columns + size) // 8)


def spell(batch: Columns, by: Sequence[str], words: int, what: str) -> Words:
    """The key columns of a batch in so many words for each row. TypeError for what cannot be a key, ValueError for what
    is too long; both say `what` it is for."""
    spelt = np.zeros((words, len(batch)), np.uint64)
    spelt[0] = len(by)
    fill = np.full(len(batch), 2 + len(by), np.int64)
    for field, name in enumerate(by):
        column = batch.column(name)
        if isinstance(column, np.ndarray):
            code, numbers = _numbers(column, f"{what}: the key {name!r}")
            wrong = _put_numbers(numbers, code, field, spelt, fill)
        else:
            bounds, text, there = _texts(column)
            is_bytes = "binary" in type_name(column)
            wrong = _put_text(bounds.astype(np.int64), text, there, field, is_bytes, spelt, fill)
        if wrong >= 0:
            raise _too_long(batch.select(by).slice(wrong, wrong + 1).rows()[0], words, what)
    return spelt


def _too_long(key: Sequence[Value], words: int, what: str) -> Unspellable:
    sizes = [len(each.encode() if isinstance(each, str) else each) for each in key if isinstance(each, str | bytes)]
    size = sum(sizes) + 8 * sum(each is not None and not isinstance(each, str | bytes) for each in key)
    shown = ", ".join(repr(each)[:60] for each in key)
    if any(each > MOST_BYTES for each in sizes):
        return Unspellable(f"{what}: the key {shown} has a text of {max(sizes)} bytes, and {MOST_BYTES} are the most")
    return Unspellable(
        f"{what}: the key {shown} takes {size} bytes, and there is room for {words * 8 - 2 - len(key)}: say "
        f"keys=megaphone.spelled({-(-size // 8) * 8})"
    )


def hash_spelt(spelt: Words) -> Words:
    """One word for each row."""
    hashes = np.empty(spelt.shape[1], np.uint64)
    _hash(spelt, hashes)
    return hashes


def spell_and_hash(batch: Columns, by: Sequence[str], words: int, what: str) -> tuple[Words, Words]:
    """Both together, as `spell` and `hash_spelt` do it: one text, which most keys are, in one pass."""
    column = batch.column(by[0])
    if len(by) > 1 or isinstance(column, np.ndarray) or not len(batch):
        spelt = spell(batch, by, words, what)
        return spelt, hash_spelt(spelt)
    spelt, hashes = np.empty((words, len(batch)), np.uint64), np.empty(len(batch), np.uint64)
    wrong = _spell_text(*_texts(column), "binary" in type_name(column), spelt, hashes)
    if wrong >= 0:
        raise _too_long(batch.select(by).slice(wrong, wrong + 1).rows()[0], words, what)
    return spelt, hashes


def unspell(spelt: Words, columns: int) -> list[Column]:
    """The key columns of spellings. Integers are of 64 bits, moments of nanoseconds (in UTC if they had a zone)."""
    fill = np.full(spelt.shape[1], 2 + columns, np.int64)
    spelt = np.ascontiguousarray(spelt)
    return [_column(spelt, field, fill) for field in range(columns)]


def as_spelt(column: Column, what: str) -> Column:
    """A key column as it comes out when it was spelled out."""
    if not isinstance(column, np.ndarray):
        return column
    code, numbers = _numbers(column, what)
    return _typed(numbers, code)


def _typed(numbers: Integers, code: int) -> Array:
    kind = np.dtype(_KINDS[code])
    return with_zone(
        numbers.astype(bool) if kind.kind == "b" else numbers.view(kind), "UTC" if code == _ZONED else None
    )


def _numbers(column: Array, what: str) -> tuple[int, Integers]:
    kind = column.dtype.kind
    if kind == "b":
        return _BOOLEAN, column.astype(np.int64)
    if kind == "u" and column.itemsize == 8 and len(column) and int(column.max()) >= 1 << 63:
        raise TypeError(f"{what} is {column.max()}, and integers that are spelled out are below 2^63")
    if kind in "iu":
        return _INTEGER, np.require(column, np.int64, ["C", "A"])
    if kind == "M" and np.datetime_data(column.dtype)[0] == "D":
        return _DATE, counts(column, "D", what)
    if kind == "M":
        return _MOMENT if zone_of(column) is None else _ZONED, counts(column, "ns", what)
    if kind == "m":
        return _SPAN, counts(column, "ns", what)
    raise TypeError(f"{what} holds {type_name(column)}: keys are strings, bytes, integers, booleans, dates or moments")


def _texts(column: Column) -> tuple[NDArray[np.signedinteger], Bytes, Bytes]:
    """Where the bytes of each text begin and end, the bytes, and which texts there are (nothing: all)."""
    assert not isinstance(column, np.ndarray)
    _, offsets, data = column.buffers()
    assert offsets is not None
    width = np.dtype(np.int64 if type_name(column).startswith("large") else np.int32)
    bounds = np.frombuffer(memoryview(offsets), width)[column.offset : column.offset + len(column) + 1]
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(memoryview(data), np.uint8)
    there = np.empty(0, np.uint8)
    if column.null_count:
        there = np.fromiter((value is not None for value in column.to_pylist()), np.uint8, len(column))
    return bounds, text, there


@njit(inline="always")
def _put_byte(spelt: Words, row: int, place: int, value: int) -> None:
    spelt[place >> 3, row] |= np.uint64(value) << np.uint64((place & 7) << 3)


@njit(inline="always")
def _eight(text: Bytes, first: int, size: int) -> np.uint64:
    """Up to eight bytes as a word, zeros behind them."""
    if first + 8 <= text.size:
        word = load_word(text, first)
        return word if size == 8 else word & ((np.uint64(1) << np.uint64(size << 3)) - np.uint64(1))
    word = np.uint64(0)
    for place in range(size):
        word |= np.uint64(text[first + place]) << np.uint64(place << 3)
    return word


@kernel(types.int64(_NUMBERS, _TEXT, _TEXT, types.int64, types.boolean, _SPELT, _FILL))
def _put_text(
    bounds: Integers, text: Bytes, there: Bytes, field: int, is_bytes: bool, spelt: Words, fill: Integers
) -> int:
    """Adds a column of texts; the first row that has no room for its own, or -1."""
    room = spelt.shape[0] * 8
    flags = np.uint64(1) << np.uint64(8 + field) if is_bytes else np.uint64(0)
    for i in range(fill.size):
        if there.size and not there[i]:
            spelt[0, i] |= flags
            _put_byte(spelt, i, 2 + field, _NULL)
            continue
        size = bounds[i + 1] - bounds[i]
        at = fill[i]
        if size > MOST_BYTES or at + size > room:
            return i
        spelt[0, i] |= flags
        _put_byte(spelt, i, 2 + field, size + 1)
        fill[i] = at + size
        shift = np.uint64((at & 7) << 3)
        for k in range(bounds[i], bounds[i + 1], 8):
            word = _eight(text, k, min(bounds[i + 1] - k, 8))
            spelt[at >> 3, i] |= word << shift
            if shift and word >> (_64 - shift):
                spelt[(at >> 3) + 1, i] |= word >> (_64 - shift)
            at += 8
    return -1


@kernel(
    *[
        types.int64(types.Array(width, 1, "C", readonly=True), _TEXT, _TEXT, types.boolean, _SPELT, types.uint64[::1])
        for width in (types.int32, types.int64)
    ]
)
def _spell_text(
    bounds: NDArray[np.signedinteger], text: Bytes, there: Bytes, is_bytes: bool, spelt: Words, hashes: Words
) -> int:
    """Keys of one text, and their hashes; the first row that has no room for its own, or -1. The text begins behind
    three bytes (see above), so a word has eight bytes of it that begin at 5, 13, 21, ..."""
    words = spelt.shape[0]
    room = words * 8 - 3
    first = np.uint64(1 | 1 << 8) if is_bytes else np.uint64(1)
    for i in range(hashes.size):
        at, size = int(bounds[i]), int(bounds[i + 1] - bounds[i])
        word = first
        if there.size and not there[i]:
            size = 0
            word |= np.uint64(_NULL) << np.uint64(16)
        elif size > MOST_BYTES or size > room:
            return i
        else:
            word |= np.uint64(size + 1) << np.uint64(16)
        if size > 0:
            word |= _eight(text, at, min(size, 5)) << np.uint64(24)
        spelt[0, i] = word
        made = mix(word)
        for j in range(1, words):
            begun = 8 * j - 3
            word = _eight(text, at + begun, min(size - begun, 8)) if size > begun else np.uint64(0)
            spelt[j, i] = word
            made = mix(made ^ word)
        hashes[i] = made
    return -1


@kernel(types.int64(_NUMBERS, types.int64, types.int64, _SPELT, _FILL))
def _put_numbers(numbers: Integers, code: int, field: int, spelt: Words, fill: Integers) -> int:
    """Adds a column of numbers, eight bytes each."""
    room = spelt.shape[0] * 8
    for i in range(fill.size):
        at = fill[i]
        if at + 8 > room:
            return i
        word, shift = np.uint64(numbers[i]), np.uint64((at & 7) << 3)
        spelt[at >> 3, i] |= word << shift
        if shift:
            spelt[(at >> 3) + 1, i] |= word >> (_64 - shift)
        fill[i] = at + 8
        _put_byte(spelt, i, 2 + field, code)
    return -1


@kernel(types.void(_SPELT, types.uint64[::1]))
def _hash(spelt: Words, hashes: Words) -> None:
    for i in range(hashes.size):
        hashes[i] = mix(spelt[0, i])
    for j in range(1, spelt.shape[0]):
        for i in range(hashes.size):
            hashes[i] = mix(hashes[i] ^ spelt[j, i])


def _column(spelt: Words, field: int, fill: Integers) -> Column:
    """One key column, which begins at `fill` in each row: that moves behind it."""
    place = 2 + field
    codes = (spelt[place >> 3] >> np.uint64(8 * (place & 7))).astype(np.uint8)
    if not len(codes) or int(codes.min()) <= _NULL:
        return _text_column(spelt, field, codes, fill)
    found = np.unique(codes).tolist()
    if len(found) > 1:
        raise TypeError(f"a key column has been {' and '.join(_KINDS.get(code, 'text') for code in found)} in turn")
    numbers = np.empty(len(codes), np.int64)
    _get_numbers(spelt, fill, numbers)
    return _typed(numbers, found[0])


def _text_column(spelt: Words, field: int, codes: Bytes, fill: Integers) -> Column:
    import pyarrow as pa

    flags = (spelt[0] >> np.uint64(8 + field)) & np.uint64(1)
    there = codes != _NULL
    if len(codes) and (int(codes.max()) > _NULL or flags[there].min(initial=1) != flags[there].max(initial=0) > 0):
        raise TypeError("a key column has been strings, bytes or numbers in turn: send keys of one type")
    sizes = np.where(there, codes, 1) - 1
    total = int(sizes.sum(dtype=np.int64))
    large = total >= 1 << 31
    bounds: NDArray[np.signedinteger] = (
        np.zeros(len(codes) + 1, np.int64) if large else np.zeros(len(codes) + 1, np.int32)
    )
    np.cumsum(sizes, out=bounds[1:])
    text = np.empty(total, np.uint8)
    _get_text(spelt, fill, bounds, text)
    of_bytes, of_text = (pa.large_binary, pa.large_string) if large else (pa.binary, pa.string)
    kind = (of_bytes if len(codes) and flags.max() else of_text)()
    valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    column: Column = pa.Array.from_buffers(kind, len(codes), [valid, pa.py_buffer(bounds), pa.py_buffer(text)])
    return column


@kernel(*[types.void(_SPELT, _FILL, bounds, types.uint8[::1]) for bounds in (types.int32[::1], types.int64[::1])])
def _get_text(spelt: Words, fill: Integers, bounds: NDArray[np.signedinteger], text: Bytes) -> None:
    for i in range(fill.size):
        at, end = fill[i], np.int64(bounds[i + 1])
        word = np.uint64(0)
        if bounds[i] < end:
            word = spelt[at >> 3, i] >> np.uint64((at & 7) << 3)
        for k in range(np.int64(bounds[i]), end):
            text[k] = np.uint8(word)
            word >>= _8
            at += 1
            if at & 7 == 0 and k + 1 < end:
                word = spelt[at >> 3, i]
        fill[i] = at


@kernel(types.void(_SPELT, _FILL, types.int64[::1]))
def _get_numbers(spelt: Words, fill: Integers, numbers: Integers) -> None:
    for i in range(fill.size):
        at = fill[i]
        shift = np.uint64((at & 7) << 3)
        word = spelt[at >> 3, i] >> shift
        if shift:
            word |= spelt[(at >> 3) + 1, i] << (_64 - shift)
        numbers[i] = np.int64(word)
        fill[i] = at + 8


@kernel(types.void(_WORDS, _WORDS, types.int64[::1]))
def find_rows(keys: Words, wanted: Words, rows: Integers) -> None:
    """For each wanted key the number of a row that has it, or -1. O(keys + wanted)."""
    size = 16
    while size < 2 * keys.size:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int64)
    for i in range(keys.size):
        slot = mix(keys[i]) & mask
        while slots[slot] >= 0 and keys[slots[slot]] != keys[i]:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i
    for i in range(wanted.size):
        slot = mix(wanted[i]) & mask
        while slots[slot] >= 0 and keys[slots[slot]] != wanted[i]:
            slot = (slot + np.uint64(1)) & mask
        rows[i] = slots[slot]
