"""What a supervisor makes of whatever another says: news, or an error that names the host."""

from __future__ import annotations

import contextlib
import socket
from random import Random
from typing import Any

import pytest
import trio

from dataflow.comm import codec
from dataflow.comm.frames import FrameEncoder
from dataflow.comm.handshake import Keys
from dataflow.comm.pipes import SocketPipe
from dataflow.errors import DataflowError, ProtocolError, WorkerFailed
from dataflow.launch import report
from dataflow.launch.cluster import Others
from dataflow.launch.control import (
    AGAIN,
    Alive,
    Farewell,
    HostAnswers,
    HostAsks,
    HostFailed,
    LifeBegins,
    News,
    Results,
    decode_news,
    encode_news,
)
from dataflow.launch.hosts import Cluster
from dataflow.launch.verdict import Failed, Lost, Returned
from tests.comm import fuzz
from tests.engine.harness import failsafe

CLUSTER = Cluster((("127.0.0.1", 9000), ("127.0.0.1", 9100)), 0, 2, b"0123456789abcdef")
NEWS: list[News] = [Alive(), Farewell(), HostFailed("why"), HostFailed("why", AGAIN), Results({2: "a", 3: (1, 2)}),
                    LifeBegins(2, 7, {"dataflow 0": b"manifest", "other": None}), HostAsks(1, 2, b"question"),
                    HostAnswers(1, b"answer")]  # fmt: skip
KEY = b"k" * 24


@pytest.mark.parametrize("news", NEWS, ids=lambda news: type(news).__name__)
def test_what_is_said_arrives(news: News) -> None:
    assert decode_news(encode_news(news), range(2, 4)) == news


NONSENSE: dict[str, Any] = {
    "nothing": None,
    "a number": 7,
    "an empty list": [],
    "a kind that is none": ["dead"],
    "a kind that is a number": [1],
    "too much": ["alive", "and kicking"],
    "a failure that is not text": ["failed", [1], "end"],
    "a failure without text": ["failed"],
    "a failure that leads nowhere": ["failed", "why", "then"],
    "a life without a number": ["begin", "one", 1, {}],
    "a life that goes on from text": ["begin", 1, 1, {"dataflow": "text"}],
    "a question that is text": ["ask", 1, 2, "question"],
    "a question to nobody": ["ask", 1, b"question"],
    "an answer without a number": ["answer", b"answer"],
    "results that are a list": ["results", [1, 2]],
    "results of another host's worker": ["results", {0: "mine"}],
    "results of a worker that is a bool": ["results", {True: 1}],
    "results of a worker that is text": ["results", {"2": 1}],
}


@pytest.mark.parametrize("message", NONSENSE.values(), ids=NONSENSE)
def test_what_makes_no_sense(message: Any) -> None:
    with pytest.raises(ProtocolError, match="is nothing that a host would say"):
        decode_news(codec.encode(message), range(2, 4))


def test_text_of_another_host_cannot_write_on_our_terminal() -> None:
    news = decode_news(codec.encode(["failed", "\x1b]0;title\x07 caused\nby \x9b31m" + "x" * 10_000, "end"]), range(2))
    assert isinstance(news, HostFailed)
    assert news.why.startswith("\\x1b]0;title\\x07 caused\nby \\x9b31m") and len(news.why) < 5000


def test_any_change_of_what_is_said_is_news_or_a_protocol_error() -> None:
    for seed in range(3000):
        chance = Random(seed)
        data = encode_news(chance.choice(NEWS))
        if chance.random() < 0.5:
            data = fuzz.close_tree(fuzz.change(chance, fuzz.open_tree(data)))
        else:
            data = fuzz.damage(chance, data)
        with contextlib.suppress(ProtocolError):
            assert isinstance(decode_news(data, range(2, 4)), News)


def listen_to(*sent: bytes) -> BaseException:
    """What a supervisor raises when another sends these bytes."""

    async def run() -> None:
        here, there = socket.socketpair()
        others = Others(CLUSTER, patience=30)
        with here, there:
            there.sendall(b"".join(sent))
            async with trio.open_nursery() as nursery:
                await others.start(nursery, {1: (SocketPipe(here), Keys(KEY, KEY))})

    with failsafe(20), pytest.raises(BaseExceptionGroup) as caught:
        trio.run(run)
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    return error


def framed(*messages: Any, header: bytes = b"") -> bytes:
    encoder = FrameEncoder(KEY)
    bodies = [message if isinstance(message, bytes) else codec.encode(message) for message in messages]
    return b"".join(encoder.encode(header, len(body)) + body for body in bodies)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"garbage" * 20, "cannot be understood: these are not frames"),
        (framed(b"\xc1"), "cannot be understood: damaged data"),
        (framed(["dead\x1b[2J"]), r"cannot be understood: \['dead\\x1b\[2J'\] is nothing that a host would say"),
        (framed({}), "cannot be understood"),
        (framed(["alive"], header=b"more"), "a frame with a header"),
        (framed(["results", {2: 1}]), "the results of 1 workers"),
        (framed(["results", {2: 1, 3: 1}], ["results", {2: 1, 3: 1}]), "or sent them twice"),
        (framed(["results", {0: 1, 3: 1}]), "cannot be understood"),
        (framed(["failed", "\x1b[31mred", "end"]), r"\\x1b\[31mred \(reported by"),
    ],
)
def test_a_host_that_talks_nonsense_is_named(sent: bytes, said: str) -> None:
    error = listen_to(sent)
    assert isinstance(error, WorkerFailed) and isinstance(error, DataflowError)
    with pytest.raises(WorkerFailed, match=r"host 1, 127\.0\.0\.1:9100, with workers 2 to 3"):
        raise error
    with pytest.raises(WorkerFailed, match=said):
        raise error


@pytest.mark.parametrize(
    "made", [None, [], ["result"], ["lost", "x"], ["failure", 1, 2], ["else", 1], {"a": 1}], ids=repr
)
def test_a_report_of_a_worker_that_is_none(made: Any) -> None:
    with pytest.raises(ValueError, match="is not what a worker reports"):
        report.decode_report(0, codec.encode(made))


def test_reports_of_workers_pass() -> None:
    assert report.decode_report(1, report.encode_result(1, {"a": 1})) == Returned(1, {"a": 1})
    assert report.decode_report(1, report.encode_lost(3)) == Lost(1, 3)
    for error in (ValueError("x"), OSError(2, "no"), ValueError(lambda: None)):
        failed = report.decode_report(1, report.encode_failure(error))
        assert isinstance(failed, Failed) and failed.worker == 1
