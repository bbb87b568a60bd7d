"""The stream of events, any slice of it, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from nexmark.events import kernels, payload, vocabulary
from nexmark.events.config import SCRAMBLE, Config
from nexmark.events.kernels import Column

Table: TypeAlias = dict[str, Column | pa.Array]  # by column; Arrow arrays for the strings of a payload
Events: TypeAlias = dict[str, Table]  # by kind
Ints: TypeAlias = NDArray[np.int64]

COLUMNS: Mapping[str, Sequence[str]] = {
    "person": ("event", "id", "name", "city", "state", "date_time"),
    "auction": ("event", "id", "item_name", "initial_bid", "reserve", "date_time", "expires", "seller", "category"),
    "bid": ("event", "auction", "bidder", "price", "date_time"),
}
ENCODED = frozenset(vocabulary.ENCODED)  # columns of codes, see `vocabulary.dictionary`

_KERNELS = {"person": kernels.persons, "auction": kernels.auctions, "bid": kernels.bids}
_INT, _CODE = np.dtype(np.int64), np.dtype(np.int32)
_UNWANTED = {dtype: np.empty(0, dtype) for dtype in (_INT, _CODE)}
_NONE_SCATTERED = _UNWANTED[_INT]


class Generator:
    """Makes the events of a `Config`; which worker makes which of them, and how many at a time, is all the same.

    `columns` names what is wanted, by kind; kinds and columns that are not named cost nothing. `payload="full"` adds
    the long strings, as Arrow arrays; single ones of them can be named among the columns. The first generator of a
    process compiles, or loads what was compiled before.

    Costs, on one core: 15 to 25 ns for an event with all columns, and some 10 µs for a call and kind. Consecutive
    numbers are several times faster than others, and than groups that come out of order.

    >>> generator = Generator(Config(rate=1000), columns={"person": ["id"], "bid": ["auction", "date_time"]})
    >>> events = generator.events(range(48, 52))
    >>> events["person"]["id"].tolist(), events["bid"]["date_time"].tolist()
    ([1001], [48000000, 49000000])
    """

    def __init__(
        self,
        config: Config | None = None,
        columns: Mapping[str, Sequence[str]] = COLUMNS,
        payload: Literal["none", "full"] = "none",
    ) -> None:
        if payload not in ("none", "full"):
            raise ValueError(f"payload is {payload!r}; it must be 'none' or 'full'")
        self.config = config or Config()
        self.columns = _checked(columns)
        self.payload = payload
        self._payload = {kind: self._wanted_payload(kind) for kind in self.columns}
        self._most_events = self.config.most_events
        self._kinds = {kind: _Kind(kind, self.config, self._made(kind)) for kind in self.columns}
        self.events(range(0))  # compiles

    def events(self, numbers: range | ArrayLike, out: Events | None = None) -> Events:
        """The events of these numbers, by kind, in the order of the numbers.

        `out`, from `buffers`, is written over and views of it are returned: for large slices this saves the pages.
        """
        if isinstance(numbers, range) and numbers.step == 1 and self.config.group == 1:
            start, stop = numbers.start, max(numbers.start, numbers.stop)
            self._check_bounds(start, stop)
            made = {name: kind.run(start, stop, out) for name, kind in self._kinds.items()}
        else:
            ids = self.ids(numbers)
            offsets = ids % self.config.length_of_round
            made = {name: kind.scattered(ids, offsets, out) for name, kind in self._kinds.items()}
        return {kind: self._with_payload(kind, table) for kind, table in made.items()}

    def ids(self, numbers: range | ArrayLike) -> Ints:
        """The event ids of event numbers: the same, or shuffled within each group.

        >>> Generator(Config(group=10)).ids(range(10)).tolist()
        [0, 3, 6, 9, 2, 5, 8, 1, 4, 7]
        """
        if isinstance(numbers, range):
            n = np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64)
        else:
            n = _whole(numbers)
        if len(n):
            self._check_bounds(int(n.min()), int(n.max()) + 1)
        group = self.config.group
        ids: Ints = n if group == 1 else n // group * group + n * SCRAMBLE % group
        return ids

    def buffers(self, events: int) -> Events:
        """Room for any slice of so many events, to be given as `out`."""
        return {name: dict(zip(kind.names, kind.arrays(events), strict=True)) for name, kind in self._kinds.items()}

    def _wanted_payload(self, kind: str) -> tuple[str, ...]:
        return tuple(name for name in payload.COLUMNS[kind] if self.payload == "full" or name in self.columns[kind])

    def _made(self, kind: str) -> Sequence[str]:
        """The plain columns that are made. A payload is fitted to the lengths of the other strings, so these are made
        even if they are not wanted; that of a bid depends on its number alone."""
        plain = [name for name in self.columns[kind] if name in COLUMNS[kind]]
        if not self._payload[kind]:
            return plain
        return list(dict.fromkeys((*plain, "event"))) if kind == "bid" else COLUMNS[kind]

    def _with_payload(self, kind: str, table: Table) -> Table:
        wanted = self._payload[kind]
        if not wanted:
            return table
        full = table | payload.columns_of(kind, self._kinds[kind].keys, table, wanted)
        return {name: full[name] for name in dict.fromkeys((*self.columns[kind], *wanted))}

    def _check_bounds(self, start: int, stop: int) -> None:
        if start < 0:
            raise ValueError(f"there is no event {start}; events count from 0")
        if stop > self._most_events:
            raise ValueError(
                f"event {stop - 1} would come after the end of time; at {self.config.rate} events per second there can "
                f"be {self._most_events}: raise the rate"
            )


class _Kind:
    """One kind of event, and the columns of it that are made."""

    def __init__(self, kind: str, config: Config, names: Sequence[str]) -> None:
        self.names = names
        self.keys = kernels.keys_of(config.seed)
        self._kind = kind
        self._kernel = _KERNELS[kind]
        self._record = kernels.record_of(config)
        self._first, self._width = config.place(kind)
        self._length_of_round = config.length_of_round
        self._dtypes = [_CODE if name in ENCODED else _INT for name in names]
        # Where the arrays of `names` go among the arguments of the kernel, which takes all columns in their order.
        self._places = [COLUMNS[kind].index(name) for name in names]
        self._arguments = [_UNWANTED[_CODE if name in ENCODED else _INT] for name in COLUMNS[kind]]

    def run(self, start: int, stop: int, out: Events | None) -> Table:
        """Those among consecutive event ids."""
        return self._fill(self._before(stop) - self._before(start), _NONE_SCATTERED, start, stop, out)

    def scattered(self, ids: Ints, offsets: Ints, out: Events | None) -> Table:
        """Those among these event ids, of which `offsets` are the places in their rounds."""
        own = ids[(offsets >= self._first) & (offsets < self._first + self._width)]
        return self._fill(len(own), own, 0, 0, out)

    def arrays(self, rows: int) -> list[Column]:
        return [np.empty(rows, dtype) for dtype in self._dtypes]

    def _before(self, event: int) -> int:
        """How many are among the event ids below this one."""
        rounds, rest = divmod(event, self._length_of_round)
        return rounds * self._width + min(max(rest - self._first, 0), self._width)

    def _fill(self, rows: int, ids: Ints, start: int, stop: int, out: Events | None) -> Table:
        arrays = self.arrays(rows) if out is None else self._views(rows, out)
        arguments = self._arguments.copy()
        for place, array in zip(self._places, arrays, strict=True):
            arguments[place] = array
        self._kernel(self._record, self.keys, ids, start, stop, *arguments)
        return dict(zip(self.names, arrays, strict=True))

    def _views(self, rows: int, out: Events) -> list[Column]:
        room = out.get(self._kind, {})
        for name, dtype in zip(self.names, self._dtypes, strict=True):
            if name not in room or len(room[name]) < rows or room[name].dtype != dtype:
                raise ValueError(
                    f"out has no room for {rows} rows of {self._kind}.{name}; make it with this generator's "
                    "buffers(events), for as many events as the largest slice has"
                )
        return [room[name][:rows] for name in self.names]


def _checked(columns: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    for kind, names in columns.items():
        if kind not in COLUMNS:
            raise ValueError(f"there is no kind of event {kind!r}; there are {', '.join(COLUMNS)}")
        if isinstance(names, str):
            raise TypeError(f"the columns of {kind} are a list of names, not the string {names!r}")
        known = (*COLUMNS[kind], *payload.COLUMNS[kind])
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"{kind} has no column {unknown[0]!r}; it has {', '.join(known)}")
    return {kind: tuple(names) for kind, names in columns.items()}


def _whole(numbers: ArrayLike) -> Ints:
    array = np.asarray(numbers)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise TypeError(f"event numbers are a range or a flat array of integers, not {array.ndim}-D {array.dtype}")
    return array.astype(np.int64, copy=False)
