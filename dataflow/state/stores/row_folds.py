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


def one_input(fold: Callable[[Time, list[Record], State, Postponer], Iterable[Record]]) -> Apply:
    """`fold(time, records, state, notificator)`, for all records of a bin at a time."""

    def apply(time: Time, records: list[list[Record]], state: State, postponer: Postponer) -> Iterable[Record]:
        return fold(time, records[0], state, postponer)

    return apply
