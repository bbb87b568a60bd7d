"""Flow control: how much data may be on its way before sources wait. Pure.

Every worker weighs what it sends to others, and is told when their operators have taken it. What has been sent and
not taken is *on its way*. While that is more than the limit the worker is *under pressure*; it says so to all, and
sources on all workers wait until nobody is under pressure any more.

What has been taken may still have to wait, for an asynchronous sink to write it. That is weighed where it waits, per
dataflow, and makes sources of that dataflow wait in the same way.

Only sources wait. Operators, progress, control and state never do. So there is no cycle of waiting: sources wait for
operators to take what is queued, and operators wait for nobody. What is on its way for one worker is at most the
limit, and what its sources and operators send between crossing it and the sources' noticing.
docs/internals/transport.md has the argument in full.
"""

from __future__ import annotations

from dataflow.errors import ProtocolError
from dataflow.values import Value

DEFAULT_LIMIT = 64 << 20
ON_ITS_WAY = -1  # in the place of a dataflow's number: pressure that concerns them all
_OBJECT = 32  # what a small object weighs: a guess, as good as any
ROW = 2 * _OBJECT  # what a row weighs that is a small object itself
_SAMPLE = 4  # rows of a batch that are looked at


def weigh(batch: Value) -> int:
    """The weight of a batch in bytes: known for columns, guessed from a few rows otherwise. O(1).

    >>> weigh([1, 2, 3]), weigh(["x" * 1000] * 10)
    (192, 10640)
    """
    if type(batch) is list:
        if len(batch) == 1:
            return _weigh_row(batch[0])
    elif (size := getattr(batch, "nbytes", None)) is not None:
        return int(size)
    sample = batch[:: max(1, len(batch) // _SAMPLE)][:_SAMPLE]
    return len(batch) * sum(map(_weigh_row, sample)) // len(sample) if sample else 0


def _weigh_row(row: object) -> int:
    """Itself and what it holds directly."""
    if type(row) is int:
        return ROW
    parts = row if isinstance(row, list | tuple) else (row,)
    texts = sum([len(part) for part in parts[:16] if isinstance(part, str | bytes)])
    return _OBJECT * (1 + len(parts)) + texts


class Flow:
    """One worker's account. Each operation costs O(1)."""

    def __init__(self, peers: int, limit: int = DEFAULT_LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"the limit of data on its way must be positive, not {limit}")
        self.limit = limit
        self.on_its_way = 0
        self.most = 0  # the most that ever was on its way, for reports and tests
        # Small amounts are acknowledged together. All that may stay unacknowledged must fit under half of the limit,
        # where the pressure ends, or a sender could wait for an acknowledgement that never comes.
        self._grain = max(1, limit // (4 * peers))
        self._unacknowledged: dict[int, int] = {}  # by receiver, the parts of on_its_way
        self._taken: dict[int, int] = {}  # by sender, what was taken and not yet acknowledged
        self._kept: dict[int, int] = {}  # by dataflow, what waits here to be written
        self._pressing: set[tuple[int, int]] = set()  # (worker, dataflow or ON_ITS_WAY): who is under pressure, by what

    @property
    def open(self) -> bool:
        """Whether nobody has too much data on its way."""
        return not any(why == ON_ITS_WAY for _, why in self._pressing)

    @property
    def pressing(self) -> list[tuple[int, int]]:
        """Who is under pressure, and by what: (worker, dataflow or ON_ITS_WAY)."""
        return sorted(self._pressing)

    @property
    def owed(self) -> list[tuple[int, int]]:
        """Who has not taken what was sent to them, and how much that is; the one who owes most first."""
        return sorted(((to, size) for to, size in self._unacknowledged.items() if size), key=lambda each: -each[1])

    def open_to(self, dataflow: int) -> bool:
        """Whether sources of a dataflow may go on. Other dataflows' sinks do not matter: one may wait for us."""
        return not any(why in (ON_ITS_WAY, dataflow) for _, why in self._pressing)

    def sent(self, me: int, size: int, to: int) -> bool | None:
        """Data was sent. True if that puts this worker, `me`, under pressure, which it must say to all."""
        self.on_its_way += size
        self._unacknowledged[to] = self._unacknowledged.get(to, 0) + size
        if self.on_its_way > self.most:
            self.most = self.on_its_way
        if self.on_its_way <= self.limit and not self._pressing:
            return None
        return self._changed(me, ON_ITS_WAY, self.on_its_way)

    def acknowledged(self, me: int, size: int, by: int) -> bool | None:
        """Data of this worker's was taken. False if that ends its pressure, which it must say to all.

        ProtocolError if the other was never sent as much: believed, it would end all pressure for good.
        """
        left = self._unacknowledged.get(by, 0) - size
        if size < 0 or left < 0:
            raise ProtocolError(f"worker {by} acknowledges {size} bytes, of which {-left} were never sent to it")
        self._unacknowledged[by] = left
        self.on_its_way -= size
        return self._changed(me, ON_ITS_WAY, self.on_its_way)

    def kept(self, me: int, dataflow: int, size: int) -> bool | None:
        """A sink here has taken that much to write, or has written it (less than 0). Returns as the two above do."""
        total = self._kept.pop(dataflow, 0) + size
        if total:
            self._kept[dataflow] = total
        return self._changed(me, dataflow, total)

    def _changed(self, me: int, why: int, total: int) -> bool | None:
        pressing = (me, why) in self._pressing
        if total > self.limit and not pressing:
            self._pressing.add((me, why))
            return True
        if pressing and total <= self.limit // 2:
            self._pressing.discard((me, why))
            return False
        return None

    def taken(self, sender: int, size: int) -> int:
        """Operators here took data of another's. What to acknowledge now; 0 for nothing yet."""
        total = self._taken.get(sender, 0) + size
        if total < self._grain:
            self._taken[sender] = total
            return 0
        self._taken.pop(sender, None)
        return total

    def pressed(self, sender: int, on: bool, why: int = ON_ITS_WAY) -> None:
        """Another worker says that it is, or no longer is, under pressure."""
        if on:
            self._pressing.add((sender, why))
        else:
            self._pressing.discard((sender, why))

    @property
    def keeps(self) -> bool:
        """Whether sinks here have something to write."""
        return bool(self._kept)

    def resize(self, peers: int) -> None:
        """There are so many workers now."""
        self._grain = max(1, self.limit // (4 * peers))

    def left(self, me: int, worker: int) -> bool | None:
        """A worker has left: what it owes and is owed is forgotten. Returns as `acknowledged` does."""
        self._taken.pop(worker, None)
        self._pressing = {(who, why) for who, why in self._pressing if who != worker}
        self.on_its_way -= self._unacknowledged.pop(worker, 0)
        return self._changed(me, ON_ITS_WAY, self.on_its_way)

    def forget(self, dataflow: int) -> None:
        """A dataflow was dropped: nobody will write what its sinks have taken."""
        self._kept.pop(dataflow, None)
        self._pressing = {(worker, why) for worker, why in self._pressing if why != dataflow}
