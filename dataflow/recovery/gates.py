"""Which participant may go how far, and which cut waits for whom. Pure (C2 and C5 of docs/internals/recovery.md)."""

from __future__ import annotations

from dataflow.build.cuts import FOREVER, Gate
from dataflow.time.order import Time


class Gates:
    """The gates of one dataflow on one worker.

    One cut is under way at a time: the first that was announced and is not concluded. It waits for the share of each
    participant. Whoever has given it may go on, up to the next cut or to the frontier of the cut stream. When that
    frontier is empty, the final cut follows. Costs O(participants) for each move of the frontier.
    """

    def __init__(self, resume_at: Time) -> None:
        self._frontier: Time = resume_at
        self._cuts: list[Time] = []  # announced and not concluded, in order; the first is under way
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
        """A cut was announced: it waits for everybody's share, when those before it are concluded."""
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

    def give(self, gate: Gate) -> None:
        """A participant has given its share of the cut that waited."""
        assert gate.cut is not None and self._given[gate] < gate.cut
        self._given[gate] = gate.cut
        self._move(gate)

    def conclude(self, cut: Time) -> None:
        """It is known what became of the cut under way: the next may begin."""
        assert self._cuts[0] == cut, (self._cuts, cut)
        del self._cuts[0]
        self._move_all()

    def repeat(self, cut: Time) -> None:
        """The final cut was abandoned: it waits for everybody's share once more."""
        assert self._cuts == [cut] == [FOREVER]
        for gate in self._given:
            self._given[gate] = self._resume_at
        self._move_all()

    @property
    def idle(self) -> bool:
        """Whether no cut is under way or announced."""
        return not self._cuts

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
        if cut is None or cut > self._frontier:
            gate.move(self._frontier, None)
        else:
            gate.move(cut, cut if cut == self._cuts[0] else None)
