"""What supervisors of different hosts say to each other, as bytes and back. Pure.

There are four things to say, and each has one shape. Whatever else arrives is an error that says what it was: the
secret is known to whoever sent it, but their program may be another, or somebody may have taken it over.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from dataflow.comm import codec
from dataflow.errors import ProtocolError
from dataflow.launch.verdict import ByWorker
from dataflow.text import plain, show


@dataclass(frozen=True, slots=True)
class Alive:
    """The host is there."""


@dataclass(frozen=True, slots=True)
class HostFailed:
    """Something failed, on that host or as far as it knows: text to be shown to people."""

    why: str


@dataclass(frozen=True, slots=True)
class Results:
    """What the host's workers returned."""

    by_worker: ByWorker


@dataclass(frozen=True, slots=True)
class Farewell:
    """The host has nothing more to say."""


News: TypeAlias = Alive | HostFailed | Results | Farewell


def encode_news(news: News) -> bytes:
    """As bytes. TypeError names a result that cannot be sent."""
    if isinstance(news, HostFailed):
        return codec.encode(["failed", news.why])
    if isinstance(news, Results):
        return codec.encode(["results", news.by_worker])
    return codec.encode(["alive" if isinstance(news, Alive) else "goodbye"])


def decode_news(data: bytes | memoryview, workers: Container[int]) -> News:
    """What the host with these workers says; ProtocolError if it makes no sense.

    A host answers for its own workers, and text of its is made fit to print.
    """
    try:
        message: object = codec.decode(data)
    except ValueError as error:
        raise ProtocolError(plain(str(error), 500)) from None
    if type(message) is list and message and type(message[0]) is str:
        kind, *content = message
        if kind in ("alive", "goodbye") and not content:
            return Alive() if kind == "alive" else Farewell()
        if kind == "failed" and len(content) == 1 and type(content[0]) is str:
            return HostFailed(plain(content[0]))
        if kind == "results" and len(content) == 1 and _are_results(content[0], workers):
            return Results(content[0])
    raise ProtocolError(f"{show(message)} is nothing that a host would say")


def _are_results(found: object, workers: Container[int]) -> TypeGuard[ByWorker]:
    return type(found) is dict and all(type(worker) is int and worker in workers for worker in found)
