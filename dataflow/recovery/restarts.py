"""Whether a run that has failed is tried again. Pure: failures in, decisions out.

Failures are counted in a window of time, so that a run of months may fail more often than a run of seconds. What
would fail again in the same way at once is not tried again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from dataflow.build.cuts import StateMismatch, Unrecoverable
from dataflow.channels.blame import RECORD
from dataflow.errors import CannotTravel, ConstructionError, GraphMismatch, StateTooLarge, TooManyWorkers
from dataflow.operators.sinks import SinkUnavailable
from dataflow.recovery.announcing import SnapshotsFail
from dataflow.recovery.catalogue import Fenced
from dataflow.recovery.manifest import SnapshotDamaged, SnapshotTooNew

HOPELESS = (
    ConstructionError,
    GraphMismatch,
    Unrecoverable,
    StateMismatch,
    CannotTravel,
    TooManyWorkers,
    StateTooLarge,  # it would grow again
    SnapshotTooNew,
    Fenced,  # another run has taken over: it must not be fenced in turn
    SnapshotsFail,  # to go back would lose more, and mend nothing
    SinkUnavailable,  # the same: it has been tried again for as long as is allowed
)
"""What has nothing to do with records, and comes again with the next try."""


@dataclass(frozen=True, slots=True)
class Again:
    """All go back to the last snapshot."""

    number: int  # of this restart, in the window
    most: int


@dataclass(frozen=True, slots=True)
class Older:
    """All go back to the snapshot before the one that they started from. This is not counted."""


@dataclass(frozen=True, slots=True)
class Enough:
    """The run ends with the failure; `why` is a note for it, or empty if there is nothing to add."""

    why: str


Decision: TypeAlias = Again | Older | Enough


class Restarts:
    """Counts failures: at most `most` restarts in `window` seconds.

    >>> restarts = Restarts(1, 60.0)
    >>> restarts.decide(ValueError("once"), 0.0), restarts.decide(ValueError("twice"), 61.0)
    (Again(number=1, most=1), Again(number=1, most=1))
    >>> restarts.decide(ValueError("at once"), 62.0)
    Enough(why='it failed 2 times within 60 seconds: 1 restart was allowed')
    """

    def __init__(self, most: int, window: float) -> None:
        self._most = most
        self._window = window
        self._failures: deque[tuple[float, str]] = (
            deque()
        )  # when, and where; invariant: at most `most`, all in the window

    def decide(self, error: BaseException, now: float, *, unbuilt: bool = False, choosing: bool = False) -> Decision:
        """What follows from a failure at a time. `unbuilt`: no life of this run has built a dataflow yet. `choosing`:
        it was raised when a snapshot was chosen, so no older one can be either, if they are damaged."""
        if not isinstance(error, Exception) or isinstance(error, HOPELESS):
            return Enough("")
        if isinstance(error, SnapshotDamaged):
            return Enough("") if choosing else Older()
        if unbuilt:
            return Enough("")
        while self._failures and now - self._failures[0][0] > self._window:
            self._failures.popleft()
        place = _place(error)
        if len(self._failures) >= self._most:
            return Enough(self._why([*(where for _, where in self._failures), place]))
        self._failures.append((now, place))
        return Again(len(self._failures), self._most)

    def _why(self, places: list[str]) -> str:
        if not self._most:
            return "restarts=0: it is not tried again"
        times = f"{len(places)} times within {self._window:g} seconds"
        allowed = f"{self._most} restart{'s were' if self._most > 1 else ' was'} allowed"
        if len(set(places)) > 1:
            return f"it failed {times}: {allowed}"
        if places[0].startswith(RECORD):
            return f"the same record failed {times}: {allowed}. Mend the record, or the function that cannot take it"
        return f"it failed {times}, each time in the same way: {allowed}"


def _place(error: BaseException) -> str:
    """What two failures have in common if they are the same: the record, or else the kind and the message."""
    for note in getattr(error, "__notes__", ()):
        if str(note).startswith(RECORD):
            return str(note)
    return f"{type(error).__name__}: {error}"


def one_line(error: BaseException, most: int = 500) -> str:
    """An error, for a line that people read: its message, and what its notes say."""
    known = type(error).__module__.startswith("dataflow.")
    text = "; ".join([f"{error}" if known else f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def explain_decision(error: BaseException, decision: Again | Older) -> str:
    """What people are told of a failure after which a run goes on."""
    if isinstance(decision, Older):
        return f"{one_line(error)}: back to the snapshot before"
    return f"{one_line(error)}: restart {decision.number} of {decision.most}"
