"""What a guest hands back when it ends, as bytes and back; and what became of the run, given what all handed back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dataflow.comm import codec
from dataflow.errors import ExecutorLost, Terminated, WorkerFailed
from dataflow.launch.host_lives import ElsewhereFailed
from dataflow.launch.report import RemoteTraceback, decode_failure, encode_failure
from dataflow.launch.verdict import ByWorker, Unaccounted

CONSEQUENCES = (Unaccounted, ElsewhereFailed, Terminated)
"""What guests say when another has failed, the most precise first."""


@dataclass(frozen=True, slots=True)
class Handed:
    """By one guest: what main returned on every worker that it knows of, or why it did not; and lines that could not be
    sent home."""

    results: ByWorker | None = None
    error: BaseException | None = None
    unsent: dict[str, bytes] = field(default_factory=dict)  # by stream


def encode_handed(handed: Handed) -> bytes:
    """As bytes. TypeError if a result is no plain data."""
    failure = None
    if handed.error is not None:
        cause = handed.error.__cause__
        terminated = isinstance(handed.error, Terminated | KeyboardInterrupt)
        text = cause.text if isinstance(cause, RemoteTraceback) else None
        failure = [terminated, encode_failure(handed.error, text=text)]
    return codec.encode([handed.results, failure, handed.unsent])


def decode_handed(worker: int, data: bytes) -> Handed:
    """What a guest handed back."""
    results, failure, unsent = codec.decode(data)
    if failure is None:
        return Handed(results, None, unsent)
    terminated, report = failure
    error: BaseException
    if terminated:
        error = Terminated(f"worker {worker} was told to end")
    else:
        error = decode_failure(worker, codec.decode(report)[1:])
    return Handed(None, error, unsent)


def judge(
    handed: Mapping[int, Handed], died: Mapping[int, str], given_up: Sequence[Exception] = ()
) -> list[object]:
    """The results, by worker; raises the first cause if there are none. `given_up`: what Spark said of jobs.

    One failure has many consequences: the others lose their connections, or hear of it. So whoever blames another is
    asked last, and whoever was told to end before that.
    """
    for of in handed.values():
        if of.error is not None and not isinstance(of.error, CONSEQUENCES):
            raise of.error from of.error.__cause__
    for worker, how in died.items():
        raise WorkerFailed(f"the guest with worker {worker} did not hand anything back: {how}", worker)
    for error in sorted(given_up, key=lambda error: not isinstance(error, ExecutorLost)):
        raise error
    for kind in CONSEQUENCES:
        for of in handed.values():
            if isinstance(of.error, kind):
                raise of.error from of.error.__cause__
    results: ByWorker = {}
    for number in sorted(handed, reverse=True):  # guest 0 knows of all with whom the run began
        results.update(handed[number].results or {})
    return [results[number] for number in sorted(results)]
