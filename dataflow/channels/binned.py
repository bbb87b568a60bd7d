"""A batch of records that are sorted by their bins: of a large batch, a bin is told once and not with each record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dataflow.errors import ProtocolError
from dataflow.values import Record


class Binned(list[Record]):
    """Records in the order of their bins.

    >>> batch = Binned(["fox", "dog", "cat"], [3, 7], [1, 3])
    >>> list(batch.groups()), len(batch)
    ([(3, ['fox']), (7, ['dog', 'cat'])], 3)
    """

    __slots__ = ("bins", "ends")

    def __init__(self, records: Iterable[Record], bins: list[int], ends: list[int]) -> None:
        """`bins`: which have records here. `ends`: by bin, where its records end; the next one's begin there."""
        super().__init__(records)
        self.bins = bins
        self.ends = ends

    def groups(self) -> Iterator[tuple[int, list[Record]]]:
        """By bin, its records."""
        start = 0
        for number, end in zip(self.bins, self.ends, strict=True):
            yield number, self[start:end]
            start = end

    @classmethod
    def received(cls, records: list[Record], bins: object, ends: object) -> Binned:
        """What another worker has sent. ValueError if that cannot be."""
        if type(bins) is not list or type(ends) is not list or len(bins) != len(ends):
            raise ValueError("bins and where their records end do not match")
        if {*map(type, bins), *map(type, ends)} - {int} or (bins and min(bins) < 0):
            raise ValueError("a bin, or the end of one, that is no such number")
        if [0, *ends] != sorted({0, *ends}) or (ends[-1] if ends else 0) != len(records):
            raise ValueError("bins that end where they cannot")
        return cls(records, bins, ends)

    def require_below(self, bins: int, name: str) -> None:
        """ProtocolError if there is a bin among them that an operator has not."""
        if self.bins and max(self.bins) >= bins:
            raise ProtocolError(f"{name} was sent records of bin {max(self.bins)}, and has {bins} bins")
