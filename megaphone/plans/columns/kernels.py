"""Compiled loops over rings: rows of one edge of a plan, in the order in which they came, chained by key.

A row has the hash of its key, the number of the row before it of the same key, the times of its first and last
component, the time at which it came, and then the numbers of its components in their streams' rings. (In a stream's own
ring the row is the component, and has the record's values instead.) Rows are numbered from 0 on, for ever. They lie in
pages: `pages` has, by the number of a page, where it begins. A slot of the hash table has a hash and the number of the
last row that has it; -1 where there is nothing. A key whose last row is forgotten loses its slot. What is before `base`
has been forgotten, and what is before `valid[bin]` has left with its bin: chains end there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Flags, Int, Ints, Word, Words
from dataflow.state.tables.blocks import fetch_row

HASH, BEFORE, FIRST, LAST, STAMP, PARTS = 0, 1, 2, 3, 4, 5  # columns of a row
PAGE = 11  # a page has two to this power rows
REST = (1 << PAGE) - 1
LIVE, USED = 0, 1  # what is counted: rows that count, slots in use
AHEAD = 16  # rows that are fetched before they are used
NEVER = -(1 << 62)  # before all times; a row that begins then has left with its key


@kernel(
    "void(uint64[::1], int64[::1], int64[::1], int64, int64[:,::1], int64[:,::1], int64[::1], int64[:,::1], int64,"
    " uint64, int64[::1], int64[::1])"
)
def insert(
    hashes: Words,
    first: Ints,
    last: Ints,
    stamp: Int,
    parts: Ints,
    rows: Ints,
    pages: Ints,
    slots: Ints,
    number: Int,
    shift: Word,
    counts: Ints,
    tally: Ints,
) -> None:
    """Adds rows, the first of which has a number. There is room for all. `parts`: their components, or values."""
    turn, most = pages.size - 1, slots.shape[0] - 1
    for i in range(hashes.size):
        if i + AHEAD < hashes.size:
            fetch_row(slots, (np.int64(hashes[i + AHEAD]) & most) * 2)
        hashed = np.int64(hashes[i])
        at, before = hashed & most, np.int64(-1)
        while True:
            head = slots[at, 1]
            if head == -1:
                tally[1] += 1
                break
            if slots[at, 0] == hashed:
                before = head
                break
            at = (at + 1) & most
        slots[at, 0] = hashed
        slots[at, 1] = number
        row = pages[(number >> PAGE) & turn] + (number & REST)
        rows[row, 0] = hashed
        rows[row, 1] = before
        rows[row, 2] = first[i]
        rows[row, 3] = last[i]
        rows[row, 4] = stamp
        for k in range(parts.shape[1]):
            rows[row, 5 + k] = parts[i, k]
        counts[np.int64(hashes[i] >> shift)] += 1
        number += 1
    tally[0] += hashes.size


@kernel(
    "void(int64[::1], int64[::1], uint64[::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1], int64[::1],"
    " boolean, int64[::1], uint64[::1], int64[::1], int64[::1], int64[:,::1])"
)
def combine(
    ones: Ints,
    others: Ints,
    hashes: Words,
    first: Ints,
    last: Ints,
    parts: Ints,
    rows: Ints,
    pages: Ints,
    is_source: bool,
    pick: Ints,
    out_hashes: Words,
    out_first: Ints,
    out_last: Ints,
    out_parts: Ints,
) -> None:
    """Composites of pairs. `pick`: for each component, its place among those of the one and then of the other."""
    turn, mine = pages.size - 1, parts.shape[1]
    for i in range(ones.size):
        if i + AHEAD < ones.size:
            ahead = others[i + AHEAD]
            fetch_row(rows, (pages[(ahead >> PAGE) & turn] + (ahead & REST)) * rows.shape[1])
        one, row = ones[i], pages[(others[i] >> PAGE) & turn] + (others[i] & REST)
        out_hashes[i] = hashes[one]
        out_first[i] = min(first[one], rows[row, 2])
        out_last[i] = max(last[one], rows[row, 3])
        for k in range(pick.size):
            place = pick[k]
            if place < mine:
                out_parts[i, k] = parts[one, place]
            elif is_source:
                out_parts[i, k] = others[i]
            else:
                out_parts[i, k] = rows[row, 5 + place - mine]


@kernel(
    "void(int64[::1], int64[::1], int64[:,::1], int64[:,::1], int64[::1], boolean, int64[::1], int64[:,::1])"
)
def combine_parts(
    ones: Ints, others: Ints, parts: Ints, rows: Ints, pages: Ints, is_source: bool, pick: Ints, out: Ints
) -> None:
    """The components of pairs, and nothing else: what becomes a result needs no more."""
    turn, mine = pages.size - 1, parts.shape[1]
    for i in range(ones.size):
        if not is_source and i + AHEAD < ones.size:
            ahead = others[i + AHEAD]
            fetch_row(rows, (pages[(ahead >> PAGE) & turn] + (ahead & REST)) * rows.shape[1])
        row = pages[(others[i] >> PAGE) & turn] + (others[i] & REST)
        for k in range(pick.size):
            place = pick[k]
            if place < mine:
                out[i, k] = parts[ones[i], place]
            elif is_source:
                out[i, k] = others[i]
            else:
                out[i, k] = rows[row, 5 + place - mine]


@kernel("void(int64[:,::1], int64)")
def free_slot(slots: Ints, at: Int) -> None:
    """Empties a slot: what was put behind it because it was taken moves up."""
    most = slots.shape[0] - 1
    behind = at
    while True:
        behind = (behind + 1) & most
        if slots[behind, 1] == -1:
            break
        if (behind - slots[behind, 0]) & most >= (behind - at) & most:
            slots[at, 0] = slots[behind, 0]
            slots[at, 1] = slots[behind, 1]
            at = behind
    slots[at, 1] = -1


@kernel("int64(int64[:,::1], int64[::1], int64, int64, int64, uint64, int64[::1], int64[::1], int64[::1])")
def purge(
    rows: Ints, pages: Ints, base: Int, end: Int, before: Int, shift: Word, valid: Ints, counts: Ints, tally: Ints
) -> Int:
    """Forgets the rows at the front that came before a time; the number of the first that is left."""
    turn = pages.size - 1
    while base < end:
        row = pages[(base >> PAGE) & turn] + (base & REST)
        if rows[row, 4] >= before:
            break
        bin = np.int64(np.uint64(rows[row, 0]) >> shift)
        if base >= valid[bin] and rows[row, 2] != NEVER:
            counts[bin] -= 1
            tally[0] -= 1
        base += 1
    return base


@kernel("void(int64[:,::1], int64, int64, int64, int64[::1])")
def sweep(slots: Ints, start: Int, end: Int, base: Int, tally: Ints) -> None:
    """Frees those of some slots whose keys have no row from `base` on."""
    for at in range(start, end):
        while slots[at, 1] != -1 and slots[at, 1] < base:
            free_slot(slots, at)  # what moved up may be of the past as well
            tally[1] -= 1


@kernel("void(int64[:,::1], uint64, int64[::1])")
def unlink(slots: Ints, key: Word, tally: Ints) -> None:
    """Forgets where the chain of a hash begins."""
    most, hashed = slots.shape[0] - 1, np.int64(key)
    at = hashed & most
    while slots[at, 1] != -1:
        if slots[at, 0] == hashed:
            free_slot(slots, at)
            tally[1] -= 1
            return
        at = (at + 1) & most


@kernel("void(int64[:,::1], int64[:,::1], int64, int64[::1])")
def rehash(slots: Ints, into: Ints, base: Int, tally: Ints) -> None:
    """Puts the slots into another table, which is empty. (In their order: that of a table twice as large is the same
    twice over, so both are gone through from front to back.) Without those whose keys have no row from `base` on."""
    most = into.shape[0] - 1
    for i in range(slots.shape[0]):
        if slots[i, 1] == -1:
            continue
        if slots[i, 1] < base:
            tally[1] -= 1
        else:
            at = slots[i, 0] & most
            while into[at, 1] != -1:
                at = (at + 1) & most
            into[at, 0] = slots[i, 0]
            into[at, 1] = slots[i, 1]


@kernel("int64(int64[:,::1], int64[::1], int64, int64, uint64, boolean[::1], int64[::1], int64, int64[::1])")
def scan(
    rows: Ints, pages: Ints, base: Int, end: Int, shift: Word, wanted: Flags, valid: Ints, low: Int, numbers: Ints
) -> Int:
    """The rows of the bins that are wanted, without those that begin before `low`; how many they are."""
    turn, count = pages.size - 1, 0
    for number in range(base, end):
        row = pages[(number >> PAGE) & turn] + (number & REST)
        bin = np.int64(np.uint64(rows[row, 0]) >> shift)
        if wanted[bin] and number >= valid[bin] and rows[row, 2] >= low:
            numbers[count] = number
            count += 1
    return count


@kernel("void(int64[::1], int64[:,::1], int64[::1], boolean, uint64[::1], int64[::1], int64[::1], int64[:,::1])")
def fetch(
    numbers: Ints, rows: Ints, pages: Ints, is_source: bool, hashes: Words, first: Ints, last: Ints, parts: Ints
) -> None:
    """Rows as what is given to `probe` and `insert`."""
    turn = pages.size - 1
    for i in range(numbers.size):
        row = pages[(numbers[i] >> PAGE) & turn] + (numbers[i] & REST)
        hashes[i] = np.uint64(rows[row, 0])
        first[i] = rows[row, 2]
        last[i] = rows[row, 3]
        if is_source:
            parts[i, 0] = numbers[i]
        else:
            for k in range(parts.shape[1]):
                parts[i, k] = rows[row, 5 + k]


@kernel(
    "void(uint64[::1], int64[:,::1], int64, int64[:,::1], int64[::1], uint64, int32[::1], int64[:,:,::1], int64,"
    " uint64[::1])"
)
def cut(
    hashes: Words,
    parts: Ints,
    column: Int,
    rows: Ints,
    pages: Ints,
    shift: Word,
    courses: NDArray[np.int32],
    cuts: Ints,
    slot: Int,
    alive: Words,
) -> None:
    """Strikes the chains which a component breaks: it is not from before the time that its bin's course has for it.
    `cuts`: by course, chain and slot."""
    turn = pages.size - 1
    for i in range(hashes.size):
        number = parts[i, column]
        time = rows[pages[(number >> PAGE) & turn] + (number & REST), 2]
        course = courses[np.int64(hashes[i] >> shift)]
        for chain in range(cuts.shape[1]):
            if time >= cuts[course, chain, slot]:
                alive[i] &= ~(np.uint64(1) << np.uint64(chain))


@kernel("void(int64[:,::1], int64, int64[:,::1], int64[::1], uint64[:,::1])")
def gather(parts: Ints, column: Int, rows: Ints, pages: Ints, out: Words) -> None:
    """The values of components, column by column."""
    turn = pages.size - 1
    for i in range(parts.shape[0]):
        if i + AHEAD < parts.shape[0]:
            ahead = parts[i + AHEAD, column]
            fetch_row(rows, (pages[(ahead >> PAGE) & turn] + (ahead & REST)) * rows.shape[1])
        number = parts[i, column]
        row = pages[(number >> PAGE) & turn] + (number & REST)
        for k in range(out.shape[0]):
            out[k, i] = np.uint64(rows[row, 5 + k])


@kernel("void(uint64[::1], uint64, int64[::1])")
def count_bins(hashes: Words, shift: Word, counts: Ints) -> None:
    """Counts the records of each bin."""
    for i in range(hashes.size):
        counts[np.int64(hashes[i] >> shift)] += 1
