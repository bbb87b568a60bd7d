"""Who is there: what one worker knows of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Roster:
    """The workers of a run as one of them sees them.

    *Present* are all that this worker talks to. *Members* take part, as of the last change. A leaver is present and no
    member; it hears updates of configurations until it is *muted*, since it may still have records to route.
    """

    def __init__(self, me: int, members: Iterable[int], present: Iterable[int] | None = None) -> None:
        self.me = me
        self.members = tuple(sorted(members))
        self.present = tuple(sorted(self.members if present is None else present))
        self.leaving: set[int] = set()  # who shall be given nothing more, member or not
        self.muted: set[int] = set()
        self.span = 1 + max((*self.present, me))  # one more than the greatest number there ever was
        self.others: tuple[int, ...] = ()  # to whom progress goes
        self.audience: tuple[int, ...] = ()  # to whom updates of configurations go
        self.ever_changed = False
        self.settled = self.members  # the same, while no request to scale is being carried out; else none
        self._refresh()

    def _refresh(self) -> None:
        self.others = tuple(worker for worker in self.present if worker != self.me)
        self.audience = tuple(worker for worker in self.present if worker not in self.muted)

    @property
    def leader(self) -> int:
        """Who decides on changes. It never leaves."""
        return 0

    @property
    def dense(self) -> bool:
        """Whether members are 0, 1, 2, ..., and nobody else is there."""
        return self.members == self.present == tuple(range(len(self.members)))

    def change(self, members: Sequence[int], joiners: Sequence[int]) -> None:
        """A change was decided."""
        self.ever_changed = True
        self.members = tuple(sorted(members))
        self.present = tuple(sorted({*self.present, *joiners}))
        self.span = max(self.span, 1 + max(self.present))
        self.leaving -= set(joiners)
        self._refresh()

    def mute(self, workers: Iterable[int]) -> None:
        """Leavers need no updates any more."""
        self.muted |= set(workers)
        self._refresh()

    def gone(self, worker: int) -> None:
        """A leaver has left."""
        self.present = tuple(other for other in self.present if other != worker)
        self.leaving.discard(worker)
        self.muted.discard(worker)
        self._refresh()

    def refuses(self, worker: int) -> str | None:
        """Why a worker cannot be given anything, or None if it can."""
        if worker in self.leaving:
            return f"worker {worker} is leaving"
        if worker not in self.members:
            known = ", ".join(map(str, self.members))
            return f"there is no worker {worker}: there are {known}"
        return None
