"""Answers those who connect to a run's socket. Nothing that they do, or fail to do, hurts the run.

One question for each connection. Whoever says nothing, or says it too slowly, or too much, or in another language, or
does not take the answer, is left; and so is whoever is not us (or root). At most so many are attended to at once.
Whoever has asked when the serving ends (the run goes back to a snapshot, or ends) is told so.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from dataflow.asking.messages import (
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    Question,
    Refused,
    decode_question,
    encode_refusal,
)
from dataflow.launch.framing import TooLong, cut_message, frame

_CHUNK = 1 << 14
_LAST_WORDS = 0.5  # seconds for which the end of a run waits for somebody who does not take the last answer
_OVER = "the run goes back to its last snapshot, or ends: ask again"
_CREDENTIALS = struct.Struct("=iII")  # process, user, group


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much patience a run has with those who ask."""

    seconds: float = 5.0  # to ask, once connected; and to take the answer
    clients: int = 16


async def serve(
    listener: socket.socket, respond: Callable[[Question], Awaitable[bytes]], bounds: Bounds | None = None
) -> None:
    """Answers until it is cancelled."""
    bounds = bounds or Bounds()
    waiting = trio.socket.from_stdlib_socket(listener)
    attended = 0

    async def attend(client: trio.socket.SocketType) -> None:
        nonlocal attended
        attended += 1
        try:
            with client:
                await _attend(client, respond, bounds)
        finally:
            attended -= 1

    async with trio.open_nursery() as nursery:
        while True:
            try:
                client, _ = await waiting.accept()
            except OSError as error:  # this process has too many files open, for example
                print(f"dataflow: nobody can be answered at the run's socket: {error}", file=sys.stderr)
                await trio.sleep(bounds.seconds)
                continue
            if attended >= bounds.clients:
                client.close()  # they see the end, and may come again
            else:
                nursery.start_soon(attend, client)


async def _attend(
    client: trio.socket.SocketType, respond: Callable[[Question], Awaitable[bytes]], bounds: Bounds
) -> None:
    if not _may_ask(client):
        return
    try:
        with trio.move_on_after(bounds.seconds) as asking:
            message = await _receive(client)
        if asking.cancelled_caught or message is None:
            return
        try:
            answer = await respond_to(message, respond)
        except trio.Cancelled:
            with trio.move_on_after(_LAST_WORDS, shield=True):
                await _send(client, frame(encode_refusal(_OVER)))
            raise
        with trio.move_on_after(bounds.seconds):
            await _send(client, frame(answer))
    except OSError:
        return  # whoever asked is gone, and nobody else wants to know


async def respond_to(message: bytes, respond: Callable[[Question], Awaitable[bytes]]) -> bytes:
    """The answer to what is, perhaps, a question; encoded."""
    try:
        question = decode_question(message)
    except ValueError as error:
        return encode_refusal(f"that is no question: {error}")
    except Refused as error:
        return encode_refusal(str(error))
    answer = await respond(question)
    if len(answer) > LONGEST_ANSWER:
        return encode_refusal(f"the answer has {len(answer)} bytes, which is too much")
    return answer


async def _receive(client: trio.socket.SocketType) -> bytes | None:
    """A whole message; None if there is none, or one that is too long."""
    received = bytearray()
    while True:
        try:
            message = cut_message(received, LONGEST_QUESTION)
        except TooLong:
            return None
        if message is not None:
            return message
        chunk = await client.recv(_CHUNK)
        if not chunk:
            return None
        received += chunk


async def _send(client: trio.socket.SocketType, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[await client.send(rest) :]


def _may_ask(client: trio.socket.SocketType) -> bool:
    """Whether it is us who asks, or root. The folder lets nobody else come so far, where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, user, _ = _CREDENTIALS.unpack(client.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return user in (0, os.geteuid())
