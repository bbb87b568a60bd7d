"""What workers tell each other of their watermarks, so that one whose partitions are silent holds nobody back. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

Tiding = tuple[int, int | None, int]
"""(worker, the watermark of its active partitions or None if it has none, the furthest of all of its partitions)"""


@dataclass
class Tidings:
    """What one worker knows of all. A worker that has said nothing yet is active, at 0."""

    worker: int
    peers: int
    ended: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._said: dict[int, tuple[int | None, int]] = dict.fromkeys(range(self.peers), (0, 0))

    def hear(self, tiding: Tiding) -> None:
        """A worker says where it is."""
        worker, active, furthest = tiding
        self._said[worker] = (active, furthest)

    def reach(self, active: int | None, furthest: int) -> int:
        """How far this worker may go: as far as its own active partitions are; if it has none, as the active ones of
        the others; if nobody has any, as far as anybody got."""
        if active is not None:
            return active
        others = [said for worker, said in self._said.items() if worker != self.worker]
        marks = [mark for mark, _ in others if mark is not None]
        if marks:
            return min(marks)
        return max([furthest, *(far for _, far in others)])
