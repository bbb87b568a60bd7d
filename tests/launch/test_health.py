"""What cluster managers ask over HTTP, of two real hosts; and a secret that a manager has put there."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Callable

import pytest
import trio
import trio.testing

from dataflow.launch.health import parse_health, serve_health
from dataflow.launch.hosts import ClusterError
from tests.launch.arena import READY, Arena, wait_until
from tests.launch.test_hosts import _ports

PROGRAM = """
    import pathlib

    async def main(worker):
        while not pathlib.Path("build").exists():
            await trio.sleep(0.01)
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.probe()
        print("built")
        try:
            await trio.sleep_forever()
        finally:
            print("finally", worker.index)
            with trio.CancelScope(shield=worker.index == 1):
                await trio.sleep_forever()
"""


def ask(port: int, request: str = "GET /ready") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(*request.split())
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()
    except ConnectionError:
        return 0, "nobody"
    finally:
        connection.close()


def test_hosts_become_ready_and_drain(arena: Arena) -> None:
    arena.write("program.py", PROGRAM)
    (arena.folder / "secret").write_text("0123456789abcdef" * 4)
    os.chmod(arena.folder / "secret", 0o600)
    first, second, *health = _ports(4)
    (arena.folder / "hosts").write_text(f"127.0.0.1:{first}\n127.0.0.1:{second}\n")
    common = ["run", "program:main", "--hosts", "hosts", "--secret", "secret"]

    def start(number: int) -> object:
        return arena.cli(*common, "--process", str(number), "--health", str(health[number]), name=f"host{number}")

    one = start(0)
    wait_until(lambda: ask(health[0], "GET /live") == (200, "alive"), "its first sign of life", READY)
    status, why = ask(health[0])
    assert status == 503 and "worker 0" in why, why  # the other host is not there
    two = start(1)
    wait_until(
        lambda: ask(health[1])[1] == "worker 1 has not built its dataflow yet", "workers without dataflows", READY
    )
    (arena.folder / "build").touch()
    for port in health:
        wait_until(lambda port=port: ask(port) == (200, "ready"), "a host that is ready", READY)  # type: ignore[misc]
    assert ask(health[0], "GET /drain")[0] == 404 and ask(health[0], "POST /ready")[0] == 404
    assert ask(health[1], "POST /drain") == (202, "leaving")  # which takes until main has returned
    two.wait_for("finally 1")  # type: ignore[attr-defined]
    assert ask(health[1], "POST /drain") == (202, "leaving")  # at once
    assert two.end().status == 143 and "finally 1" in two.out  # type: ignore[attr-defined]
    assert one.end().status == 1 and "finally 0" in one.out  # type: ignore[attr-defined]


async def exchange(port: int, sent: bytes) -> bytes:
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        await stream.send_all(sent)
        received = b""
        try:
            while chunk := await stream.receive_some(1000):
                received += chunk
        except trio.BrokenResourceError:
            return received
        return received


def served(test: Callable[[int], object]) -> None:
    """Runs a test against a server of its own."""

    async def main() -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]

        async def ready() -> str:
            await trio.lowlevel.checkpoint()
            return "not yet"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_health, ("127.0.0.1", port), ready)
            await trio.testing.wait_all_tasks_blocked()
            await test(port)  # type: ignore[misc]
            nursery.cancel_scope.cancel()

    trio.run(main)


def test_nonsense_is_refused_and_the_next_is_served() -> None:
    async def nonsense(port: int) -> None:
        for sent in (b"hello\r\n\r\n", b"GET /ready\r\n\r\n", b"GET /ready SMTP\r\n\r\n", b"\xff" * 5000):
            assert (await exchange(port, sent)).startswith((b"HTTP/1.1 400 ", b""))
        reply = await exchange(port, b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 503 ") and reply.endswith(b"\r\n\r\nnot yet\n")

    served(nonsense)


def test_whoever_is_silent_does_not_keep_others_waiting() -> None:
    async def silence(port: int) -> None:
        silent = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(40)]
        for stream in silent[:30]:
            await stream.aclose()
        assert (await exchange(port, b"GET /live HTTP/1.1\r\n\r\n")).endswith(b"alive\n")
        for stream in silent[30:]:
            await stream.aclose()

    served(silence)


def test_addresses() -> None:
    assert parse_health("[::1]:80") == ("::1", 80)
    for wrong in ("", "x", "0", "1.2.3.4:", "1.2.3.4:99999"):
        with pytest.raises(ClusterError, match="--health takes PORT or ADDRESS:PORT"):
            parse_health(wrong)
