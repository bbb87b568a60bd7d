"""What the updates of one time mean together: which bins there are then, and where. Pure.

Messages of different workers have no order, so the result depends on the set of updates alone. The rules are in
docs/internals/migration.md, under "Bins that split and merge".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from megaphone.control.tree import BinTree, Merge, Split, run_of
from megaphone.control.updates import Assign, Move, Moves

Table: TypeAlias = NDArray[np.uint16]
"""By (finest) bin, the worker. Never changed once it is made."""
Arranging: TypeAlias = Move | Moves | Assign | Split | Merge


class Arrangement(NamedTuple):
    """Which bins there are, and by finest bin the worker. Invariant: a bin is at one worker."""

    table: Table
    tree: BinTree


def dealt_out(tree: BinTree, workers: Sequence[int]) -> Arrangement:
    """Bins at these workers in turn: where they are at first.

    >>> dealt_out(BinTree.even(8, 4), [0, 1]).table.tolist()
    [0, 0, 1, 1, 0, 0, 1, 1]
    """
    by_bin = np.asarray(workers, np.uint16)[np.arange(len(tree)) % len(workers)]
    return Arrangement(tree.spread(by_bin).astype(np.uint16), tree)


def arranged(before: Arrangement, updates: Sequence[Arranging]) -> Arrangement:
    """The arrangement that updates of one time make of the one before: maps, merges, splits, moves, in this order."""
    table, tree = before
    maps = [np.asarray(update.workers, np.uint16) for update in updates if isinstance(update, Assign)]
    new: Table = np.maximum.reduce(maps) if maps else table.copy()
    merges = [update for update in updates if isinstance(update, Merge)]
    if merges:
        new = _merged(new, merges)
        tree = tree.merge(merges)
    splits = [update for update in updates if isinstance(update, Split)]
    if splits:
        tree = tree.split(splits)
    _move(new, [update for update in updates if isinstance(update, Move | Moves)])
    return Arrangement(new, tree.cut(new))


def _merged(table: Table, merges: Sequence[Merge]) -> Table:
    """The table in which each merged bin is at one worker: outer ones win, and of equal ones the greatest worker."""
    chosen: dict[str, int] = {}
    for merge in merges:
        worker = -1 if merge.worker is None else merge.worker
        chosen[merge.bin] = max(worker, chosen.get(merge.bin, -1))
    new = table.copy()
    for bin in sorted(chosen, key=len, reverse=True):  # a longer prefix is further inside
        run = run_of(bin, len(table))
        new[run.slice] = table[run.first] if chosen[bin] < 0 else chosen[bin]
    return new


def _move(table: Table, moves: Sequence[Move | Moves]) -> None:
    """Moves finest bins; of several moves of one the greatest worker wins."""
    if not moves:
        return
    chosen = np.full(len(table), -1, np.int64)
    for move in moves:
        if isinstance(move, Moves):
            np.maximum.at(chosen, move.bins, move.workers)
        else:
            part = chosen[move.number : move.number + move.count]
            np.maximum(part, move.worker, out=part)
    moved = chosen >= 0
    table[moved] = chosen[moved]
