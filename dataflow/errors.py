"""Every error that a user of the engine can cause, in one place.

Each message says what was done and what to do instead. All of them derive from `DataflowError`, so that a program can
tell the engine's complaints from its own exceptions, which the engine passes on unchanged (with a note that names the
operator).
"""

from __future__ import annotations


class DataflowError(Exception):
    """The root of the engine's own errors."""


class ConstructionError(DataflowError):
    """A dataflow graph that cannot be built as asked."""


class UnadvancedCycle(ConstructionError):
    """A loop in which records could go round for ever at one timestamp."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        path = " -> ".join([*names, names[0]])
        super().__init__(
            f"the cycle {path} does not advance time, so progress could never be certain. "
            "Send the records round through scope.feedback(increment) with an increment that is not zero, "
            "in the scope that the whole cycle belongs to."
        )


class ScopeMismatch(ConstructionError):
    """A stream used in a scope that it does not belong to."""


class GraphMismatch(DataflowError):
    """Workers that built different dataflows."""


class TimeError(DataflowError):
    """A timestamp of the wrong kind, or one that goes backwards."""


class NotAnOrder(TimeError):
    """A user's timestamp or summary breaks the laws that progress tracking rests on (debug mode finds this)."""


class CapabilityError(DataflowError):
    """Sending, delaying or downgrading without the right to do so."""


class NoTimeFollows(CapabilityError):
    """A message that has nowhere to go: the summary of its way gives no time."""


class InputClosed(DataflowError):
    """Something was sent to an input after it was closed."""


class DataflowDropped(DataflowError):
    """The dataflow was dropped while somebody still used it."""


class ProtocolError(DataflowError):
    """A peer broke the progress protocol: out of order, unknown, or for nobody."""


class WorkerFailed(DataflowError):
    """A worker ended the computation: it raised something that cannot be raised here, died, or stopped answering."""

    def __init__(self, message: str, worker: int | None = None) -> None:
        super().__init__(message)
        self.worker = worker


class StateTooLarge(DataflowError):
    """The state of a worker has grown beyond the limit that the program has set (`worker.limit_state`)."""


class TooManyWorkers(DataflowError):
    """More workers than this host's limit of open files allows; none was started."""


class NotAsGuest(DataflowError):
    """A program that a cluster manager cannot run as asked: too few slots, a setting that forbids it, a package that is
    not there. Nothing of it has run."""


class ExecutorLost(WorkerFailed):
    """A machine or a process of the cluster manager's is gone, and workers with it."""


class CannotTravel(DataflowError, TypeError):
    """Something that main uses cannot be copied to the processes of its workers; the message names it."""


class Terminated(SystemExit):
    """This process, or one of its workers, was told to end (SIGTERM). Everybody has ended, and finally clauses ran.

    Like KeyboardInterrupt it is no Exception. A program that does not catch it ends with status 143.
    """

    def __init__(self, why: str) -> None:
        super().__init__(143)
        self.why = why

    def __str__(self) -> str:
        return self.why


class PeerLost(DataflowError):
    """The connection to another worker ended before the computation did."""

    def __init__(self, peer: int) -> None:
        super().__init__(f"the connection to worker {peer} ended in the middle of the computation")
        self.peer = peer


class HandshakeError(ProtocolError):
    """A connection that is not from one of us, or from one that does not fit."""


class UnstableKey(DataflowError, TypeError):
    """A routing key that would not hash alike in every process."""


class Stuck(DataflowError):
    """Nothing can happen any more and the computation is not complete; the message explains what holds it."""
