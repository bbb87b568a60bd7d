"""Rules of the protocol, broken on purpose, one at a time. Each must be caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dataflow.members import changing, channels, leaving, reports
from dataflow.members.decisions import Welcome
from dataflow.progress.broadcast import Inbox
from megaphone.router import following


@contextmanager
def patched(where: Any, name: str, value: Any) -> Iterator[None]:
    """Puts something else in a place, for a while."""
    before = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before)


def minted_too_late() -> Any:
    """Members do not count a joiner's capabilities when the change is made."""
    return patched(changing, "changes_of", lambda dataflow, decision: [])


def batch_skipped() -> Any:
    """A joiner leaves out the first batch of progress that it hears of each member."""
    accept: Callable[..., Any] = Inbox.accept

    def skipping(self: Any, batch: Any) -> Any:
        first = self.due_from(batch.sender) == batch.sequence and batch.sequence > 3 and batch.sender not in _seen(self)
        changes = accept(self, batch)
        return () if first else changes

    return patched(Inbox, "accept", skipping)


def _seen(inbox: Any) -> set[int]:
    """By inbox, whom it has heard: the second time it is asked about somebody, that somebody is in it."""
    seen = _HEARD.setdefault(id(inbox), (inbox, set()))[1]
    before = set(seen)
    seen.update(inbox._expected)
    return before


_HEARD: dict[int, tuple[Any, set[int]]] = {}


def old_membership() -> Any:
    """On some workers exchanges go on by the members that there were."""
    push = channels.MemberChannel.push

    def old(self: Any, time: Any, prepared: Any) -> None:
        if self._worker % 2 and len(prepared) > 1:
            for worker, part in zip(*prepared[0], strict=True):
                self.push_to(worker, time, part)
        else:
            push(self, time, prepared)

    return patched(channels.MemberChannel, "push", old)


def not_held_back() -> Any:
    """What main sends while a change is decided is routed at once."""
    return patched(changing, "hold", lambda dataflow: [])


def marks_forgotten() -> Any:
    """The change takes effect at times that have been routed."""
    return patched(reports, "_mark", lambda dataflow: None)


def counts_torn() -> Any:
    """A joiner lacks some counts."""
    plain = Welcome.plain

    def torn(self: Any) -> Any:
        self.counts = list(self.counts)[1:]
        return plain(self)

    return patched(Welcome, "plain", torn)


def updates_forgotten() -> Any:
    """A joiner starts from the initial configuration."""
    return patched(following.FollowingRouter, "install", lambda self, proposal, time, handed: self._router.resize())


def leaves_too_early() -> Any:
    """A leaver goes without looking at what it has left."""
    return patched(leaving, "nothing_left", lambda dataflow: not dataflow.busy)


MUTANTS = [
    minted_too_late,
    batch_skipped,
    old_membership,
    not_held_back,
    marks_forgotten,
    counts_torn,
    updates_forgotten,
    leaves_too_early,
]
