"""What supervisors of different hosts say to each other, as bytes and back. Pure.

There are seven things to say, and each has one shape. Whatever else arrives is an error that says what it was: the
secret is known to whoever sent it, but their program may be another, or somebody may have taken it over.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from dataflow.comm import codec
from dataflow.errors import ProtocolError
from dataflow.launch.verdict import ByWorker
from dataflow.text import plain, show

END, AGAIN, OLDER = "end", "again", "older"
"""What follows from a failure: the end, or another life (from a snapshot before the last, which is damaged)."""


@dataclass(frozen=True, slots=True)
class Alive:
    """The host is there."""


@dataclass(frozen=True, slots=True)
class HostFailed:
    """Something failed, on that host or as far as it knows: text to be shown to people, and what follows."""

    why: str
    then: str = END


@dataclass(frozen=True, slots=True)
class Results:
    """What the host's workers returned."""

    by_worker: ByWorker


@dataclass(frozen=True, slots=True)
class Farewell:
    """The host has nothing more to say."""


@dataclass(frozen=True, slots=True)
class LifeBegins:
    """Where a life goes on, as host 0 has chosen: by dataflow, the manifest (see `dataflow.recovery.resume`)."""

    life: int
    incarnation: int
    manifests: Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class HostAsks:
    """Host 0 asks a worker of the host something (see `dataflow.asking.messages`)."""

    number: int
    worker: int
    question: bytes


@dataclass(frozen=True, slots=True)
class HostAnswers:
    """What that worker answered, or that it does not."""

    number: int
    answer: bytes


News: TypeAlias = Alive | HostFailed | Results | Farewell | LifeBegins | HostAsks | HostAnswers


def encode_news(news: News) -> bytes:
    """As bytes. TypeError names a result that cannot be sent."""
    if isinstance(news, HostFailed):
        return codec.encode(["failed", news.why, news.then])
    if isinstance(news, LifeBegins):
        return codec.encode(["begin", news.life, news.incarnation, dict(news.manifests)])
    if isinstance(news, HostAsks):
        return codec.encode(["ask", news.number, news.worker, news.question])
    if isinstance(news, HostAnswers):
        return codec.encode(["answer", news.number, news.answer])
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
        if kind == "failed" and len(content) == 2 and type(content[0]) is str and content[1] in (END, AGAIN, OLDER):
            return HostFailed(plain(content[0]), content[1])
        if kind == "begin" and len(content) == 3 and _are_manifests(content[2]):
            life, incarnation, manifests = content
            if type(life) is int and type(incarnation) is int:
                return LifeBegins(life, incarnation, manifests)
        if kind == "ask" and [type(each) for each in content] == [int, int, bytes]:
            return HostAsks(*content)
        if kind == "answer" and [type(each) for each in content] == [int, bytes]:
            return HostAnswers(*content)
        if kind == "results" and len(content) == 1 and _are_results(content[0], workers):
            return Results(content[0])
    raise ProtocolError(f"{show(message)} is nothing that a host would say")


def _are_manifests(found: object) -> TypeGuard[dict[str, bytes | None]]:
    return type(found) is dict and all(
        type(name) is str and (data is None or type(data) is bytes) for name, data in found.items()
    )


def _are_results(found: object, workers: Container[int]) -> TypeGuard[ByWorker]:
    return type(found) is dict and all(type(worker) is int and worker in workers for worker in found)
