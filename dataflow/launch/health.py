"""What cluster managers ask of a process, over HTTP: whether it lives, whether it is ready; and that it leave.

    GET /live      200 while the supervisor runs
    GET /ready     200 when every worker of this host is connected and has built a dataflow; 503, and why, until then
    POST /drain    as SIGTERM; from this machine alone, since nobody proves anything here

One request for each connection, of bounded size, answered in bounded time. Nothing of a request is kept or repeated.
"""

from __future__ import annotations

import ipaddress
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from dataflow.asking.messages import Question, Refused
from dataflow.launch.hosts import ClusterError
from dataflow.launch.process import Process

_LONGEST = 4096  # bytes of a request
_PATIENCE = 2.0  # seconds for a request, and for workers to answer
_AT_ONCE = 16  # connections

Ready = Callable[[], Awaitable[str]]
"""Why this host is not ready; empty if it is."""


async def serve_health(address: tuple[str, int], ready: Ready) -> None:
    """Answers at an address for as long as it is not cancelled."""
    try:
        listeners = await trio.open_tcp_listeners(address[1], host=address[0])
    except OSError as error:
        raise ClusterError(f"cannot listen on {address[0]}:{address[1]} for --health: {error}") from None
    room = trio.CapacityLimiter(_AT_ONCE)
    await trio.serve_listeners(partial(_answer, ready, room), listeners)


async def workers_ready(processes: list[Process]) -> str:
    """Asks all workers of this host; why it is not ready, or nothing."""
    for process in processes:
        try:
            with trio.fail_after(_PATIENCE):
                built = await process.ask(Question("ready"))
        except (Refused, trio.TooSlowError) as error:
            return f"worker {process.index} does not answer: {error or 'it is starting, or busy'}"
        if built is not True:
            return f"worker {process.index} has not built its dataflow yet"
    return "" if processes else "no worker has been started"


async def _answer(ready: Ready, room: trio.CapacityLimiter, stream: trio.SocketStream) -> None:
    async with stream:
        try:
            room.acquire_on_behalf_of_nowait(stream)
        except trio.WouldBlock:
            return
        try:
            with trio.move_on_after(2 * _PATIENCE):
                status, text = await _reply(await _request(stream), stream, ready)
                body = f"{text}\n".encode()
                lines = [
                    f"HTTP/1.1 {status}",
                    "Content-Type: text/plain; charset=utf-8",
                    f"Content-Length: {len(body)}",
                ]
                await stream.send_all("\r\n".join([*lines, "Connection: close", "\r\n"]).encode() + body)
        except trio.BrokenResourceError:
            return  # whoever asked has left
        finally:
            room.release_on_behalf_of(stream)


async def _request(stream: trio.SocketStream) -> str:
    """The method and the path; nothing if it is no request."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = await stream.receive_some(_LONGEST)
        received += chunk
        if not chunk or len(received) > _LONGEST:
            return ""
    words = received.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    return f"{words[0]} {words[1]}" if len(words) == 3 and words[2].startswith("HTTP/1.") else ""


async def _reply(request: str, stream: trio.SocketStream, ready: Ready) -> tuple[str, str]:
    if request == "GET /live":
        return "200 OK", "alive"
    if request == "GET /ready":
        why = await ready()
        return ("503 Service Unavailable", why) if why else ("200 OK", "ready")
    if request == "POST /drain":
        if not ipaddress.ip_address(stream.socket.getpeername()[0]).is_loopback:
            return "403 Forbidden", "only from the machine itself"
        os.kill(os.getpid(), signal.SIGTERM)
        return "202 Accepted", "leaving"
    return ("404 Not Found", "GET /live, GET /ready or POST /drain") if request else ("400 Bad Request", "not HTTP")


def parse_health(text: str) -> tuple[str, int]:
    """The address of `--health`.

    >>> parse_health("8080"), parse_health("0.0.0.0:8080")
    (('127.0.0.1', 8080), ('0.0.0.0', 8080))
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ClusterError(f"--health takes PORT or ADDRESS:PORT, and not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)
