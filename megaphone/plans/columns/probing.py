"""What is new at one edge of a plan meets the rows of another: a compiled loop over a ring.

Nearly all of its time a processor would wait for memory: a slot of the hash table, the row that it names, the row
before that one. So it goes about a block of what is new at once, in rounds: first all slots are fetched, then all rows
that they name, and then, as long as there are any, the rows before these.
"""

from __future__ import annotations

import numpy as np

from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Int, Ints, Word, Words
from dataflow.state.tables.blocks import BLOCK, fetch_row
from megaphone.plans.columns.kernels import PAGE, REST


@kernel("void(int64[:,::1], uint64[::1], int64)")
def fetch_slots(slots: Ints, hashes: Words, start: Int) -> None:
    """Asks for the slots of a block ahead of their use."""
    for i in range(start, min(start + BLOCK, hashes.size)):
        fetch_row(slots, (np.int64(hashes[i]) & (slots.shape[0] - 1)) * 2)


@kernel(
    "int64(uint64[::1], int64, int64, int64[:,::1], int64[::1], int64[:,::1], int64, int64[::1], uint64, int64[::1],"
    " int64[::1], int64[::1])"
)
def find_heads(
    hashes: Words,
    start: Int,
    end: Int,
    rows: Ints,
    pages: Ints,
    slots: Ints,
    base: Int,
    valid: Ints,
    shift: Word,
    bounds: Ints,
    who: Ints,
    numbers: Ints,
) -> Int:
    """Those of a block that have rows that count, with the number of the last; how many they are. `bounds`: of each of
    the block, its first row that counts. The slots of the next block are fetched meanwhile."""
    most, turn, stride, found = slots.shape[0] - 1, pages.size - 1, rows.shape[1], 0
    for i in range(start, end):
        if i + BLOCK < hashes.size:
            fetch_row(slots, (np.int64(hashes[i + BLOCK]) & most) * 2)
        hashed = np.int64(hashes[i])
        at = hashed & most
        number = slots[at, 1]
        while number != -1 and slots[at, 0] != hashed:
            at = (at + 1) & most
            number = slots[at, 1]
        bound = max(base, valid[np.int64(hashes[i] >> shift)])
        bounds[i - start] = bound
        who[found] = i
        numbers[found] = number
        if number >= bound:
            fetch_row(rows, (pages[(number >> PAGE) & turn] + (number & REST)) * stride)
            found += 1
    return found


@kernel(
    "int64(uint64[::1], int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[:,::1], int64, int64,"
    " int64[::1], uint64, int64, boolean, int64, int64[::1], int64[::1], int64[::1])"
)
def probe(
    hashes: Words,
    first: Ints,
    last: Ints,
    low: Ints,
    rows: Ints,
    pages: Ints,
    slots: Ints,
    base: Int,
    limit: Int,
    valid: Ints,
    shift: Word,
    window: Int,
    ordered: bool,
    start: Int,
    ones: Ints,
    others: Ints,
    count: Ints,
) -> Int:
    """Pairs of what is given, from `start` on, and the rows before `limit` of the same key that are within the window
    and not before `low`; as far as there is room for them. Where it stopped; `count` has the number of pairs.

    `ordered`: rows of a key are in the order of their times, so that a chain need not be followed to its end.
    """
    turn, stride, size, total = pages.size - 1, rows.shape[1], BLOCK, count[0]
    bounds, who, numbers = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    fetch_slots(slots, hashes, start)
    while start < hashes.size:
        end = min(start + size, hashes.size)
        found = find_heads(hashes, start, end, rows, pages, slots, base, valid, shift, bounds, who, numbers)
        while found and total + found <= ones.size:
            going = 0
            for k in range(found):
                i, number = who[k], numbers[k]
                row = pages[(number >> PAGE) & turn] + (number & REST)
                begins, before = rows[row, 2], rows[row, 1]
                late = begins >= low[i]
                near = max(rows[row, 3], last[i]) - min(begins, first[i]) <= window
                ones[total], others[total] = i, number
                total += np.int64(late & near & (number < limit))
                who[going], numbers[going] = i, before
                if (before >= bounds[i - start]) & (late | (not ordered)):
                    fetch_row(rows, (pages[(before >> PAGE) & turn] + (before & REST)) * stride)
                    going += 1
            found = going
        if found == 0:
            start, count[0] = end, total
        elif size == 1:
            break
        else:  # there is no room for all of the block: one after the other, as far as there is
            size, total = 1, count[0]
    return start
