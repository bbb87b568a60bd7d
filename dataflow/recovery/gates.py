"""Which participant may go how far, and which cut waits for whom. Pure (C2 of docs/internals/recovery.md)."""

from __future__ import annotations

from dataflow.build.cuts import FOREVER, Gate
from dataflow.time.order import Time


class Gates:
    """The gates of one dataflow on one worker.

    A gate's limit is the first announced cut whose share its participant has not given, or the frontier of the cut
    stream, whichever is less. When that frontier is empty, the final cut waits for everybody. Costs O(participants) for
    each move of the frontier.
    """

    def __init__(self, resume_at: Time) -> None:
        self._frontier: Time = resume_at
        self._cuts: list[Time] = []  # announced, in order; those that everybody has given are forgotten
        self._given: dict[Gate, Time] = {}  # the last cut that each has given; those that have resumed only
        self._resume_at = resume_at
        self._count = 0

    def enrol(self, gate: Gate) -> None:
        """One more participant, closed."""
        self._count += 1

    def resume(self, gate: Gate) -> None:
        """Opens a gate: its participant has all that it had."""
        self._given[gate] = self._resume_at
        self._move(gate)

    def announce(self, cut: Time) -> None:
        """A cut was announced: it waits for everybody's share."""
        assert not self._cuts or self._cuts[-1] < cut, (self._cuts, cut)
        self._cuts.append(cut)
        self._move_all()

    def advance(self, frontier: Time | None) -> None:
        """The frontier of the cut stream has moved; None when no cut can be announced any more."""
        if frontier is None and self._frontier != FOREVER:
            self._frontier = FOREVER
            self._cuts.append(FOREVER)
            self._move_all()
        elif frontier is not None and frontier > self._frontier:
            self._frontier = frontier
            self._move_all()

    def give(self, gate: Gate) -> Time:
        """A participant has given its share of the cut that waited; the cut."""
        cut = gate.cut
        assert cut is not None and self._given[gate] < cut
        self._given[gate] = cut
        self._cuts = [other for other in self._cuts if other > min(self._given.values()) or not self.resumed]
        self._move(gate)
        return cut

    @property
    def resumed(self) -> bool:
        """Whether every participant has resumed."""
        return len(self._given) == self._count

    def _move_all(self) -> None:
        for gate in tuple(self._given):
            self._move(gate)

    def _move(self, gate: Gate) -> None:
        given = self._given[gate]
        cut = next((cut for cut in self._cuts if cut > given), None)
        if cut is not None and cut <= self._frontier:
            gate.move(cut, cut)
        else:
            gate.move(self._frontier, None)
