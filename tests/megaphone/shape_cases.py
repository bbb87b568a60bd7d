"""Random splits and merges of bins among random moves and pins: the properties of section 3.2, and an oracle of which
bins there are, and where, in strings and dictionaries."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import megaphone
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of
from tests.megaphone import cases, column_cases, test_joins
from tests.megaphone.cases import Inputs, check_places, pinned, with_pins

Bins = set[str]  # prefixes, without their stars
Where = dict[str, int]  # by finest bin, as bits: the worker


def finest_of(bins: int) -> list[str]:
    """All finest bins, as bits."""
    width = bins.bit_length() - 1
    return [format(number, f"0{width}b") if width else "" for number in range(bins)]


def under(prefix: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


def halve(bins: Bins, bin: str) -> None:
    bins.remove(bin)
    bins.update((f"{bin}0", f"{bin}1"))


def follow(bins: Bins, where: Where, said: list[Any]) -> tuple[Bins, Where]:
    """Which bins there are, and where, after everything that was said for one time. Rule by rule."""
    bins, where, names = set(bins), dict(where), sorted(where)
    maps = [update.workers for update in said if isinstance(update, megaphone.Assign)]
    for number, name in enumerate(names):
        if maps:
            where[name] = max(workers[number] for workers in maps)
    before = dict(where)
    merges = [(update.bin[:-1], update.worker) for update in said if isinstance(update, megaphone.Merge)]
    for prefix in sorted({prefix for prefix, _ in merges}, key=len, reverse=True):
        named = [worker for other, worker in merges if other == prefix and worker is not None]
        for name in under(prefix, names):
            where[name] = max(named) if named else before[min(under(prefix, names))]
        if finer := under(prefix, bins):
            bins = (bins - set(finer)) | {prefix}
    for update in said:
        if isinstance(update, megaphone.Split):
            prefix, least = update.bin[:-1], len(update.bin) - 1 + update.into.bit_length() - 1
            while coarse := [
                bin
                for bin in bins
                if (prefix.startswith(bin) and bin != prefix) or (bin.startswith(prefix) and len(bin) < least)
            ]:
                halve(bins, coarse[0])
    moves: dict[str, int] = {}
    for update in said:
        if isinstance(update, megaphone.Move):
            for name in under(update.bin[:-1], names) if isinstance(update.bin, str) else [names[update.bin]]:
                moves[name] = max(update.worker, moves.get(name, 0))
    where |= moves
    while divided := [bin for bin in bins if len({where[name] for name in under(bin, names)}) > 1]:
        halve(bins, divided[0])
    return bins, where


def final(updates: Inputs, bins: int, peers: int) -> list[str]:
    """The bins that there are in the end, as they are named."""
    return sorted(f"{bin}*" for bin in history(updates, bins, peers)[-1][1])


def history(updates: Inputs, bins: int, peers: int) -> list[tuple[int, Bins, Where]]:
    """Since when there are which bins, and where they are."""
    names = finest_of(bins)
    known = [(-1, set(names), {name: number % peers for number, name in enumerate(names)})]
    for at in sorted({at for _, at in updates}):
        said = [update for (_, time), batch in updates.items() if time == at for update in batch]
        known.append((at, *follow(*known[-1][1:], said)))
    return known


def placing(updates: Inputs, bins: int, peers: int, dense: bool = False) -> Callable[[Any, int], tuple[int, bool]]:
    """At which worker a key is at a time, and whether apart from its bin."""
    known, names = history(updates, bins, peers), finest_of(bins)

    def place(key: Any, time: int) -> tuple[int, bool]:
        pin = pinned(updates, key, time)
        if pin is not None:
            return pin, True
        where = [where for since, _, where in known if since <= time][-1]
        return where[names[key & (bins - 1) if dense else bin_of(key, shift_of(bins))]], False

    return place


def random_prefix(chance: random.Random, bins: int) -> str:
    name = chance.choice(finest_of(bins))
    return name[: chance.randint(0, len(name))]


def with_shapes(updates: Inputs, times: int, bins: int, peers: int, chance: random.Random) -> Inputs:
    """The same updates with splits, merges and moves of prefixes among them, many of them at the times of moves."""
    result = {at: list(batch) for at, batch in updates.items()}
    for time in range(times):
        for worker in range(peers):
            said = result.setdefault((worker, time), [])
            while chance.random() < 0.5:
                prefix = random_prefix(chance, bins)
                finer = (bins.bit_length() - 1) - len(prefix)
                kind = chance.random()
                if kind < 0.4:
                    to = chance.choice([None, chance.randrange(peers)])
                    said.append(megaphone.Merge(f"{prefix}*", to))
                elif kind < 0.7:
                    said.append(megaphone.Split(f"{prefix}*", 1 << chance.randint(0, finer)))
                else:
                    said.append(megaphone.Move(f"{prefix}*", chance.randrange(peers)))
    return {at: batch for at, batch in result.items() if batch}


def run_rows(seed: int) -> None:
    """`unary` on rows; every third case with pins (`by_key`)."""
    chance = random.Random(seed)
    peers = chance.randint(1, 4)
    records, updates, times, bins = cases.random_inputs(chance, peers)
    updates = with_shapes(updates, times, bins, peers, chance)
    by_key = seed % 3 == 0
    if by_key:
        keys = list(dict.fromkeys(key for batch in records.values() for key, _ in batch)) or [0]
        updates = with_pins(updates, keys, times, peers, chance)
    given = (records, updates, times, bins, chance.randint(0, 3), by_key)
    results = simulate(cases.main, *given, workers=peers, seed=seed, debug=seed % 5 == 0)
    check_places(results, *cases.oracle(records), placing(updates, bins, peers))
    assert results[0][-1].bins == final(updates, bins, peers), "which bins there are"


def random_columns(seed: int) -> column_cases.Case:
    case = column_cases.random_case(seed)
    chance = random.Random(-seed - 2)
    updates = with_shapes(case.updates, case.times, case.bins, case.peers, chance)
    if seed % 3 == 0:
        keys = sorted({key for batch in (*case.left.values(), *case.right.values()) for key, _ in batch} | {0})
        updates = with_pins(updates, keys, case.times, case.peers, chance)
    return replace(case, updates=updates)


def check_columns(case: column_cases.Case, results: list[Any]) -> None:
    where = placing(case.updates, case.bins, case.peers, case.dense)
    check_places(results, *column_cases.oracle(case), where)
    assert results[0][-1].bins == final(case.updates, case.bins, case.peers), "which bins there are"


def run_columns(seed: int) -> None:
    """Folds on one and two inputs and functions of batches, hashed and dense."""
    case = random_columns(seed)
    check_columns(case, simulate(column_cases.main, case, workers=case.peers, seed=seed, debug=seed % 5 == 0))


def run_join(seed: int) -> None:
    case = test_joins.random_case(seed)
    chance = random.Random(-seed - 2)
    case = replace(case, updates=with_shapes(case.updates, case.times, case.bins, case.peers, chance))
    test_joins.check(case, simulate(test_joins.main, case, False, workers=case.peers, seed=seed))


def run_case(seed: int) -> None:
    """One case of one kind, for the soak."""
    (run_rows, run_columns, run_join)[seed % 3](seed // 3)
