"""The strings that make an event as long as in practice: `payload="full"`. Arrow arrays, made by compiled loops.

Like all draws they are functions of (seed, event id, field) alone. A field that needs more than 64 bits draws them
from its first 64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nexmark.events import kernels, vocabulary
from nexmark.events.kernels import Column, Ints, Keys, below, bits, i8, inlined, kernel, u8

Bytes: TypeAlias = NDArray[np.uint8]
Offsets: TypeAlias = NDArray[np.int64]

COLUMNS: Mapping[str, Sequence[str]] = {
    "person": ("email_address", "credit_card", "extra"),
    "auction": ("description", "extra"),
    "bid": ("channel", "url", "extra"),
}
_TARGET = {"person": 200, "auction": 500, "bid": 100}  # bytes of an event, on average
_POOL = 1 << 20  # bytes that `extra` is cut from
_HOT = len(vocabulary.HOT_CHANNELS)


def columns_of(
    kind: str, keys: Keys, table: Mapping[str, Column], wanted: Sequence[str]
) -> dict[str, Column | pa.Array]:
    """The payload of the events of a table, of which `wanted` is looked at. The table has all other columns of its
    kind; that of bids needs `event` alone."""
    event = table["event"].astype(np.int64, copy=False)
    match kind:
        case "person":
            email, card = _strings(_emails, 7 + 5 + 5, keys, event), _strings(_cards, 19, keys, event)
            named = _word_lengths("name")[table["name"]] + _word_lengths("city")[table["city"]]
            used = 8 + named + _lengths(email) + 19 + 2
            extra = _extra(keys[kernels.PERSON_EXTRA], event, _TARGET[kind] - used)
            return {"email_address": email, "credit_card": card, "extra": extra}
        case "auction":
            description = _strings(_descriptions, 100, keys, event)
            used = 48 + _word_lengths("item_name")[table["item_name"]] + _lengths(description)
            extra = _extra(keys[kernels.AUCTION_EXTRA], event, _TARGET[kind] - used)
            return {"description": description, "extra": extra}
        case "bid":
            codes = _channel_codes(keys, event) if "channel" in wanted or "url" in wanted else event
            made: dict[str, Column | pa.Array] = {"channel": codes, "url": codes}
            if "extra" in wanted:
                missing = np.full(len(event), _TARGET[kind] - 32, np.int64)
                made["extra"] = _extra(keys[kernels.BID_EXTRA], event, missing)
            return made
    raise LookupError(kind)


# --- Random strings --------------------------------------------------------------------------------------------------


@inlined
def word(draw: np.uint64, limit: int, out: Bytes, at: int) -> int:
    """3 to `limit` - 1 letters, one in 13 a space, trimmed, into `out` from `at` on. Returns where it ends."""
    end = at
    solid = at  # after the last letter that is not a space
    for i in range(3 + i8(below(bits(draw, 0), limit - 3))):
        chance = bits(draw, 1 + i)
        if below(chance, 13) > u8(0):
            out[end] = 97 + below(chance * u8(13), 26)
            end += 1
            solid = end
        elif end > at:
            out[end] = 32
            end += 1
    return solid


@kernel
def _emails(keys: Keys, event: Ints, offsets: Offsets, out: Bytes) -> None:
    end = 0
    for row in range(len(event)):
        draw = bits(keys[kernels.EMAIL], event[row])
        end = word(bits(draw, 1), 7, out, end)
        out[end] = 64  # @
        end = word(bits(draw, 2), 5, out, end + 1)
        for letter in (46, 99, 111, 109):  # .com
            out[end] = letter
            end += 1
        offsets[row + 1] = end


@kernel
def _cards(keys: Keys, event: Ints, offsets: Offsets, out: Bytes) -> None:
    end = 0
    for row in range(len(event)):
        draw = bits(keys[kernels.CARD], event[row])
        for i in range(19):
            out[end] = 32 if i % 5 == 4 else 48 + below(bits(draw, i), 10)
            end += 1
        offsets[row + 1] = end


@kernel
def _descriptions(keys: Keys, event: Ints, offsets: Offsets, out: Bytes) -> None:
    end = 0
    for row in range(len(event)):
        end = word(bits(keys[kernels.DESCRIPTION], event[row]), 100, out, end)
        offsets[row + 1] = end


def _strings(fill: Callable[[Keys, Ints, Offsets, Bytes], None], longest: int, keys: Keys, event: Ints) -> pa.Array:
    """The Arrow array that a kernel writes, which may use `longest` bytes for each row."""
    offsets, out = np.zeros(len(event) + 1, np.int64), np.empty(len(event) * longest, np.uint8)
    fill(keys, event, offsets, out)
    return _arrow(offsets, out)


def _arrow(offsets: Offsets, data: Bytes) -> pa.Array:
    end = int(offsets[-1])
    if end > np.iinfo(np.int32).max:
        raise ValueError(f"{end} bytes of strings in one column; make slices of fewer events")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data[:end])]
    return pa.Array.from_buffers(pa.utf8(), len(offsets) - 1, buffers)


def _lengths(strings: pa.Array) -> Ints:
    return np.diff(np.frombuffer(strings.buffers()[1], np.int32)[: len(strings) + 1]).astype(np.int64)


@cache
def _word_lengths(column: str) -> Ints:
    return np.array([len(word) for word in vocabulary.dictionary(column)], np.int64)


# --- Padding ---------------------------------------------------------------------------------------------------------


def _extra(key: np.uint64, event: Ints, missing: Ints) -> pa.Array:
    """What brings an event to its average size: a piece of the pool, 0.8 to 1.2 times as long as what is missing."""
    offsets = np.zeros(len(event) + 1, np.int64)
    spread = (2 * np.maximum(missing, 0) + 5) // 10
    _padding_offsets(key, event, np.maximum(missing, 0) - spread, 2 * spread, offsets)
    out = np.empty(offsets[-1], np.uint8)
    _padding(key, event, _pool(), offsets, out)
    return _arrow(offsets, out)


@kernel
def _padding_offsets(key: np.uint64, event: Ints, least: Ints, spread: Ints, offsets: Offsets) -> None:
    for row in range(len(event)):
        draw = bits(bits(key, event[row]), 0)
        offsets[row + 1] = offsets[row] + least[row] + i8(below(draw, spread[row]))


@kernel
def _padding(key: np.uint64, event: Ints, pool: Bytes, offsets: Offsets, out: Bytes) -> None:
    for row in range(len(event)):
        length = offsets[row + 1] - offsets[row]
        start = i8(below(bits(bits(key, event[row]), 1), len(pool) - length))
        for i in range(length):
            out[offsets[row] + i] = pool[start + i]


@cache
def _pool() -> Bytes:
    """Letters from H to z: a signed remainder of 26 added to `a`, which query 14 of the suite counts on."""
    words = np.random.PCG64(26).random_raw(_POOL).astype(np.uint32).view(np.int32)
    return (97 + np.fmod(words, 26)).astype(np.uint8)


# --- Channels --------------------------------------------------------------------------------------------------------


@kernel
def _fill_channel_codes(key: np.uint64, event: Ints, codes: NDArray[np.int32]) -> None:
    for row in range(len(event)):
        draw = bits(key, event[row])
        rest = draw * u8(2)
        hot = below(draw, 2) > u8(0)
        codes[row] = below(rest, _HOT) if hot else below(rest, vocabulary.COLD_CHANNELS) + u8(_HOT)


def _channel_codes(keys: Keys, event: Ints) -> NDArray[np.int32]:
    codes = np.empty(len(event), np.int32)
    _fill_channel_codes(keys[kernels.CHANNEL], event, codes)
    return codes
