"""Who is at fault when something goes wrong with a set of processes. Pure: events in, a verdict out.

One failure has many consequences: the others lose their connections, or are told to stop. People want to read about
the cause, once.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, TypeAlias

from dataflow.errors import WorkerFailed

ByWorker: TypeAlias = dict[int, Any]
"""What a user's main returned, by worker."""


class Unaccounted(WorkerFailed):
    """A worker cannot be reached any more, and nobody on this host knows why. Somebody elsewhere may."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A worker's main returned, and its dataflows are complete."""

    worker: int
    result: object
    left: bool = False  # whether it has left the others, who go on


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker reported an exception."""

    worker: int | None  # None: the process that starts them
    error: BaseException
    unbuilt: bool = False  # whether that worker had built no dataflow yet


@dataclass(frozen=True, slots=True)
class Exited:
    """A worker's process has ended; everything that it reported has been heard."""

    worker: int
    status: int  # negative: killed by that signal


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker lost its connection to another, which may be on the point of telling why."""

    worker: int
    peer: int


@dataclass(frozen=True, slots=True)
class Silent:
    """A worker's process is stopped, or a host does not answer."""

    worker: int
    why: str


@dataclass(frozen=True, slots=True)
class Idle:
    """A worker has gone back and is ready for a life: nothing of the old one is left in it (see `lives`)."""

    worker: int
    life: int


@dataclass(frozen=True, slots=True)
class Recruits:
    """The leader asks for workers that join, has them join, or has no use for them after all."""

    worker: int
    what: str  # start, joined, left or dismiss; invite and grown, of those who come from elsewhere
    workers: tuple[int, ...]
    peers: int


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The process that starts workers is gone, and they go with it."""

    error: BaseException


Event: TypeAlias = Returned | Failed | Exited | Lost | Silent | Idle | Recruits | Orphaned


class Verdict:
    """Gathers events. `error` is the verdict, once there is one."""

    def __init__(self, workers: range) -> None:
        self._workers = set(workers)
        self.members = set(workers)  # those that a next life would have
        self._listening: set[int] = set()  # workers that may end as they like: they have not joined
        self.results: ByWorker = {}
        self.left: set[int] = set()  # those that have left the others
        self.scaled = False  # whether workers came from elsewhere, or were to come, or have left
        self.error: BaseException | None = None
        self.unbuilt = False  # whether the error was raised before a dataflow had been built
        self._exited: set[int] = set()
        self._lost: Lost | None = None

    @property
    def complete(self) -> bool:
        """Whether every worker has returned and its process has ended."""
        return self.results.keys() >= self._workers and self._exited >= self._workers

    @property
    def suspicious(self) -> bool:
        """Whether a connection was lost and nobody has said why yet."""
        return self._lost is not None and self.error is None

    def handle(self, event: Event) -> None:
        """Takes an event into account. The first cause is the verdict; later ones are consequences."""
        if isinstance(event, Recruits):
            self._want(event)
        elif not isinstance(event, Recruits | Orphaned) and event.worker in self._listening:
            return  # others do without it
        elif isinstance(event, Returned):
            self.results[event.worker] = event.result
            if event.left:
                self.left.add(event.worker)
        elif isinstance(event, Exited):
            self._exited.add(event.worker)
            if event.worker not in self.results or event.status != 0:
                self._blame(self.obituary(event))
        elif isinstance(event, Failed | Orphaned):
            self.unbuilt = self.unbuilt or (self.error is None and isinstance(event, Failed) and event.unbuilt)
            self._blame(event.error)
        elif isinstance(event, Silent):
            self._blame(WorkerFailed(f"worker {event.worker} {event.why}", event.worker))
        elif isinstance(event, Lost):
            self._lost = self._lost or event

    def _want(self, wanted: Recruits) -> None:
        """Workers that join count from when they have."""
        if wanted.what == "joined":
            self._listening -= set(wanted.workers)
            self._workers |= set(wanted.workers)
            self.members |= set(wanted.workers)
        elif wanted.what == "left":
            self.members -= set(wanted.workers)
            self.scaled = True
        elif wanted.what in ("invite", "grown"):
            self.scaled = True
        elif wanted.what == "start":
            self._listening |= set(wanted.workers)

    def give_up_waiting(self) -> None:
        """Nobody said why a connection was lost."""
        if self._lost is not None:
            worker, peer = self._lost.worker, self._lost.peer
            self._blame(Unaccounted(f"worker {peer} cannot be reached any more: worker {worker} lost it", peer))

    @staticmethod
    def obituary(event: Exited) -> WorkerFailed:
        """What is said of a worker whose process has ended, and should not have."""
        return WorkerFailed(_obituary(event.worker, event.status), event.worker)

    def _blame(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error


def _obituary(worker: int, status: int) -> str:
    if status < 0:
        try:
            name = f" ({signal.Signals(-status).name})"
        except ValueError:
            name = ""
        return f"worker {worker} was killed by signal {-status}{name}"
    return f"worker {worker} ended with exit status {status} before the computation was complete"
