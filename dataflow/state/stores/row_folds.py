"""Users' functions on rows as what a `RowStore` applies: one form for native and migratable operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dataflow.channels.blame import name_key, name_record
from dataflow.state.stores.row_store import Apply, Postponer
from dataflow.state.values import Key, Record, State, Value
from dataflow.time.order import Time


class RightPostponer:
    """The notificator of the second input."""

    __slots__ = ("_postponer",)

    def __init__(self, postponer: Postponer) -> None:
        self._postponer = postponer

    def notify_at(self, time: Time, record: Record) -> None:
        """Presents `record` to the fold again as a right one, at a later time."""
        self._postponer.notify_at(time, record, 1)


def folding(fold: Callable[[Key, Value, State], tuple[State, Iterable[Record]]]) -> Apply:
    """A fold over the state of one key, as one over a bin's dictionary of them."""

    def apply(time: Time, records: list[list[Record]], states: State, _: Postponer) -> Iterable[Record]:
        results: list[Record] = []
        for key, value in records[0]:
            try:
                new, out = fold(key, value, states.get(key))
                if new is None:
                    states.pop(key, None)
                else:
                    states[key] = new
                results.extend(out)
            except Exception as error:
                name_key(error, key)
                name_record(error, (key, value), time=time)
                raise
        return results

    return apply


def expiring(fold: Callable[[Key, Value, State], tuple[State, Iterable[Record]]], ttl: int) -> Apply:
    """The same, where a key is forgotten when it has had no record for `ttl`. Kept is (the last time, the state, when
    the key is woken next); a wake-up, (key, None, None), is post-dated, and put off again as long as need be."""
    inner = folding(fold)

    def apply(time: Time, records: list[list[Record]], states: State, postponer: Postponer) -> Iterable[Record]:
        fresh = [record for record in records[0] if len(record) == 2]
        keys = dict.fromkeys(key for key, _ in fresh)
        plain = {key: states[key][1] for key in keys if key in states}
        out = inner(time, [fresh], plain, postponer)
        for key in keys:
            if key not in plain:
                states.pop(key, None)
            elif key in states:
                states[key] = (time, plain[key], states[key][2])
            else:
                wake(key, time, plain[key], time + ttl, states, postponer)
        for key in dict.fromkeys(record[0] for record in records[0] if len(record) == 3):
            if key not in states or states[key][2] != time:
                continue  # a wake-up of what was forgotten before
            last, state, _ = states.pop(key)
            if last + ttl > time:
                wake(key, last, state, last + ttl, states, postponer)
        return out

    def wake(key: Key, last: Time, state: State, at: Time, states: State, postponer: Postponer) -> None:
        states[key] = (last, state, at)
        postponer.notify_at(at, (key, None, None))

    return apply


def one_input(fold: Callable[[Time, list[Record], State, Postponer], Iterable[Record]]) -> Apply:
    """`fold(time, records, state, notificator)`, for all records of a bin at a time."""

    def apply(time: Time, records: list[list[Record]], state: State, postponer: Postponer) -> Iterable[Record]:
        return fold(time, records[0], state, postponer)

    return apply
