"""Which worker has which bin at which time. Pure: updates and frontiers in, tables and moves out.

An update may come any time ahead. It is *pending* until the control frontier has passed its time: until then more may
come for that time. Then it is *final*, and every worker that reads the same control stream has the same one. Of
several updates for one bin at one time, the greatest worker wins, on all workers alike: messages of different workers
have no order (`arranging` has the rules). A configuration is by finest bin, and says which bins these make up (see
`tree`). Beside the table of bins there is one of single keys, where any are pinned (see `pins`), and what is known of
plans, where bins have some (see `replans`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedDict

from dataflow.state.values import Key
from megaphone.control.arranging import Arrangement, arranged
from megaphone.control.arranging import Table as Table
from megaphone.control.replans import KnownPlans, Replan
from megaphone.control.tree import BinTree, Merge, Split
from megaphone.control.updates import Assign, Move, Moves, Update, workers_of
from megaphone.keys.keyspace import A, KeySpace, Overrides
from megaphone.keys.pins import HOME, KeyMoves, Pins

PlainHistory: TypeAlias = list[Any]  # what `as_plain` gives, as it was decoded


@dataclass(frozen=True, slots=True, eq=False)
class Migration:
    """What changes at a time: bins with where they are and where they go, single keys, and plans."""

    time: int
    bins: NDArray[np.intp]
    origins: Table
    destinations: Table
    keys: KeyMoves | None
    replans: Sequence[tuple[NDArray[np.int64], Replan]]  # bins, and the plan that they get
    table: Table  # from then on


@dataclass(frozen=True, slots=True, eq=False)
class Configuration(Generic[A]):
    """Where everything is: bins, and the keys that live apart from theirs (None: there are none)."""

    table: Table
    overrides: Overrides[A] | None
    tree: BinTree


class Configurations(Generic[A]):
    """The history of an operator's configuration, as far as anybody can still ask for it.

    Costs: `at` O(log of the history), `finalise` a copy of the table for each time that becomes final, `accept` O(1).
    """

    def __init__(self, initial: Arrangement, keys: KeySpace[A], plans: KnownPlans) -> None:
        # before the first of _since
        self._first: Configuration[A] = Configuration(initial.table, None, initial.tree)
        self._since: SortedDict[int, Configuration[A]] = SortedDict()  # each from its time on
        self._keys: KeySpace[A] = keys
        self._plans = plans
        self._pending: SortedDict[int, list[Update]] = SortedDict()

    @property
    def keys(self) -> KeySpace[A]:
        """Which keys can be pinned."""
        return self._keys

    def accept(self, time: int, updates: list[Update]) -> bool:
        """Takes checked updates for a time that is not final; whether they are the first for it."""
        first = time not in self._pending
        self._pending.setdefault(time, []).extend(updates)
        self._plans.accept(time, [update for update in updates if isinstance(update, Replan)])
        return first

    def finalise(self, is_final: Callable[[int], bool]) -> list[Migration]:
        """Makes final what no more updates can come for; the migrations that follow, in the order of time."""
        migrations = []
        while self._pending and is_final(self._pending.peekitem(0)[0]):
            time, updates = self._pending.popitem(0)
            before = self._last
            said = [u for u in updates if isinstance(u, Move | Moves | Assign | Split | Merge)]
            old, (new, tree) = before.table, arranged(Arrangement(before.table, before.tree), said)
            overrides, keys = self._pin([u for u in updates if isinstance(u, Pins)], before, new)
            self._since[time] = Configuration(new, overrides, tree)
            bins = np.flatnonzero(old != new)
            replans = self._plans.finalise(time)
            migrations.append(Migration(time, bins, old[bins], new[bins], keys, replans, new))
        return migrations

    def _pin(
        self, updates: list[Pins], before: Configuration[A], new: Table
    ) -> tuple[Overrides[A] | None, KeyMoves | None]:
        """The overrides of the next configuration, and the keys that move, if any."""
        if not updates:
            return before.overrides, None
        keys, now = self._keys.settle(updates)
        old = before.overrides
        overrides = self._keys.override(keys, now) if old is None else old.changed(keys, now)
        then = np.full(len(keys), HOME, np.int64) if old is None else old.workers_of(keys)
        changed = then != now
        keys, then, now = keys[changed], then[changed], now[changed]
        bins = self._keys.bins_of(keys)
        origins = np.where(then == HOME, before.table[bins], then)
        destinations = np.where(now == HOME, new[bins], now)
        return overrides, KeyMoves(keys, origins, then != HOME, destinations, now != HOME)

    def restore(self, table: Table, pins: Mapping[Key, int], tree: BinTree) -> None:
        """Begins with a configuration that was final before: nobody has asked for any yet."""
        overrides = None
        if pins:
            keys, workers = self._keys.settle([Pins(self._keys.check([*pins]), [*pins.values()])])
            overrides = self._keys.override(keys, workers)
        self._first = Configuration(table, overrides, tree)

    def as_plain(self) -> list[object]:
        """All of it, for a worker that joins."""
        since = [[at, _as_plain(self.configuration_since(at))] for at in self.times]
        pending = [[at, list(self._pending[at])] for at in self.pending_times]
        return [_as_plain(self._first), since, pending, self._plans.as_plain()]

    def take_over(self, plain: PlainHistory) -> list[int]:
        """Takes over what another worker has; the times for which there are pending updates."""
        first, since, pending, plans = plain
        self._plans.take_over(*plans)
        self.restore(*_from_plain(*first))
        for time, configuration in since:
            before = self._first
            self.restore(*_from_plain(*configuration))
            self._since[time], self._first = self._first, before
        for time, updates in pending:
            self.accept(time, list(updates))
        return [time for time, _ in pending]

    @property
    def times(self) -> list[int]:
        """The times from which on configurations hold that somebody may ask for, but the first."""
        return list(self._since)

    def configuration_since(self, time: int) -> Configuration[A]:
        """The configuration that holds from one of these times on."""
        found: Configuration[A] = self._since[time]
        return found

    @property
    def pending_times(self) -> list[int]:
        """The times for which there are updates that are not final."""
        return list(self._pending)

    def names(self, workers: Iterable[int]) -> bool:
        """Whether anything is at one of these workers, as of the last configuration, or will be by a pending update."""
        wanted = set(workers)
        last = self._last
        if np.isin(last.table, list(wanted)).any():
            return True
        if last.overrides is not None and wanted & set(last.overrides.as_dict().values()):
            return True
        return any(wanted & workers_of(update) for updates in self._pending.values() for update in updates)

    def pins_at(self, time: int) -> dict[Key, int]:
        """By key that lives apart from its bin at a time that is final, its worker."""
        overrides = self._at(time).overrides
        return {} if overrides is None else overrides.as_dict()

    def at(self, time: int) -> Table:
        """The configuration at a time that is final."""
        return self._at(time).table

    def tree_at(self, time: int) -> BinTree:
        """The bins that there are at a time that is final."""
        return self._at(time).tree

    def overrides_at(self, time: int) -> Overrides[A] | None:
        """The keys that are apart from their bins at a time that is final; None if there are none."""
        return self._at(time).overrides

    def _at(self, time: int) -> Configuration[A]:
        before = self._since.bisect_right(time) if self._since else 0
        return self._since.peekitem(before - 1)[1] if before else self._first

    def retire(self, is_past: Callable[[int], bool]) -> None:
        """Forgets configurations that were replaced at times for which nobody can ask any more."""
        while self._since and is_past(self._since.peekitem(0)[0]):
            _, self._first = self._since.popitem(0)
        self._plans.retire(is_past)

    @property
    def _last(self) -> Configuration[A]:
        return self._since.peekitem(-1)[1] if self._since else self._first

    @property
    def latest(self) -> Table:
        """The last configuration that is final."""
        return self._last.table

    @property
    def latest_tree(self) -> BinTree:
        """The bins that there are in the last configuration that is final."""
        return self._last.tree

    @property
    def latest_overrides(self) -> Overrides[A] | None:
        """Those of the last configuration that is final."""
        return self._last.overrides

    @property
    def settled(self) -> bool:
        """Whether there is one configuration, and none to come that has been heard of."""
        return not self._pending and not self._since

    @property
    def size(self) -> int:
        """How many configurations are kept."""
        return 1 + len(self._since)


def _as_plain(configuration: Configuration[Any]) -> list[object]:
    overrides = configuration.overrides
    pins = {} if overrides is None else overrides.as_dict()
    table, levels = configuration.table.astype("<u2").tobytes(), configuration.tree.levels.tobytes()
    return [table, [list(pin) for pin in pins.items()], levels]


def _from_plain(table: bytes, pins: list[tuple[Key, int]], levels: bytes) -> tuple[Table, dict[Key, int], BinTree]:
    return np.frombuffer(table, "<u2").astype(np.uint16), dict(pins), BinTree(np.frombuffer(levels, np.uint8))
