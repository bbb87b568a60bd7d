"""Whoever connects without being one of us, and whoever is one of us and has lost their mind."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import trio

import dataflow
from dataflow.comm import handshake
from dataflow.comm.frames import FrameEncoder, FrameError
from dataflow.comm.handshake import (
    ANSWER_SIZE,
    GREETING_SIZE,
    PROOF_SIZE,
    Connector,
    Identity,
    Listener,
    cluster_digest,
)
from dataflow.comm.link import Link
from dataflow.errors import HandshakeError, PeerLost
from dataflow.launch import mesh
from dataflow.launch.printer import Printer
from dataflow.launch.strangers import Strangers
from dataflow.run.worker import pump_of
from tests.comm.rig import HANG, SECRET, free_ports
from tests.engine.harness import failsafe, notes

CLUSTER = cluster_digest("test")
LISTENER = Identity(SECRET, CLUSTER, 0)
CONNECTOR = Identity(SECRET, CLUSTER, 1)


# ------------------------------------------------------------------------------------------------------- the handshake


def agree(connector: Connector, listener: Listener) -> Any:
    proof, keys = connector.finish(listener.answer(connector.greeting()))
    return keys, *listener.finish(proof)


def test_both_ends_agree_on_who_they_are_and_on_keys() -> None:
    mine, who, theirs = agree(Connector(CONNECTOR, 0), Listener(LISTENER))
    assert who == 1
    assert (mine.sending, mine.receiving) == (theirs.receiving, theirs.sending)
    assert mine.sending != mine.receiving
    again, _, _ = agree(Connector(CONNECTOR, 0), Listener(LISTENER))
    assert again != mine  # every connection has keys of its own


@pytest.mark.parametrize(
    ("listener", "message"),
    [
        (replace(LISTENER, secret=b"another secret"), r"does not know the secret"),
        (replace(LISTENER, cluster=cluster_digest("another")), "another computation"),
        (replace(LISTENER, number=5), r"looks for worker 0, and this is worker 5"),
    ],
)
def test_ends_that_do_not_fit(listener: Identity, message: str) -> None:
    with pytest.raises(HandshakeError, match=message):
        agree(Connector(CONNECTOR, 0), Listener(listener))


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "VERSION", 99)
    connector = Connector(CONNECTOR, 0)
    monkeypatch.undo()
    with pytest.raises(HandshakeError, match=rf"version 99 .* we speak {handshake.VERSION}"):
        Listener(LISTENER).answer(connector.greeting())


def test_a_connector_does_not_trust_a_listener_without_the_secret() -> None:
    connector = Connector(CONNECTOR, 0)
    honest = Listener(LISTENER).answer(connector.greeting())
    for at in range(len(honest)):
        answer = honest[:at] + bytes([honest[at] ^ 1]) + honest[at + 1 :]
        with pytest.raises(HandshakeError):
            connector.finish(answer)


def test_reflections_prove_nothing() -> None:
    connector, listener = Connector(CONNECTOR, 0), Listener(LISTENER)
    with pytest.raises(HandshakeError):  # its own greeting, as the answer
        connector.finish(connector.greeting() + bytes(PROOF_SIZE))
    answer = listener.answer(connector.greeting())
    with pytest.raises(HandshakeError):  # the listener's own proof, as the connector's
        listener.finish(answer[GREETING_SIZE:])
    with pytest.raises(HandshakeError):  # the listener's own greeting
        Listener(LISTENER).answer(answer[:GREETING_SIZE])


def test_a_proof_is_good_for_one_connection() -> None:
    connector, listener = Connector(CONNECTOR, 0), Listener(LISTENER)
    proof, _ = connector.finish(listener.answer(connector.greeting()))
    again = Listener(LISTENER)
    again.answer(connector.greeting())  # the greeting may be replayed; the proof may not
    with pytest.raises(HandshakeError, match=r"1 does not know the secret"):
        again.finish(proof)


# --------------------------------------------------------------------------------------------------------- a listener


Stranger = Callable[[trio.SocketStream], Awaitable[None]]


async def garbage(stream: trio.SocketStream) -> None:
    await stream.send_all(b"\x00garbage\xff" * 100)


async def http(stream: trio.SocketStream) -> None:
    await stream.send_all(b"GET / HTTP/1.1\r\nHost: example\r\nAccept: everything there is, and more\r\n\r\n")


async def silent(stream: trio.SocketStream) -> None:
    await trio.lowlevel.checkpoint()


async def half(stream: trio.SocketStream) -> None:
    await stream.send_all(Connector(CONNECTOR, 0).greeting()[:-1])


async def unproven(stream: trio.SocketStream) -> None:
    await stream.send_all(Connector(CONNECTOR, 0).greeting())
    await _exactly(stream, ANSWER_SIZE)
    await stream.send_all(bytes(PROOF_SIZE))


async def reflecting(stream: trio.SocketStream) -> None:
    await stream.send_all(Connector(CONNECTOR, 0).greeting())
    answer = await _exactly(stream, ANSWER_SIZE)
    await stream.send_all(answer[GREETING_SIZE:])


async def unexpected(stream: trio.SocketStream) -> None:
    await _shake(stream, replace(CONNECTOR, number=7))


async def of_another_computation(stream: trio.SocketStream) -> None:
    await stream.send_all(Connector(replace(CONNECTOR, cluster=cluster_digest("another")), 0).greeting())


async def looking_for_another(stream: trio.SocketStream) -> None:
    await stream.send_all(Connector(CONNECTOR, 3).greeting())


async def leaving(stream: trio.SocketStream) -> None:
    await stream.send_all(Connector(CONNECTOR, 0).greeting())
    await stream.send_eof()


STRANGERS: dict[Stranger, str] = {
    garbage: "does not speak this protocol",
    http: "does not speak this protocol",
    silent: "did not complete the handshake",
    half: "did not complete the handshake",
    unproven: "does not know",
    reflecting: "does not know",
    unexpected: "7 is not expected here",
    of_another_computation: "another computation",
    looking_for_another: "looks for",
    leaving: "ended during the handshake",
}


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    received = b""
    while len(received) < size:
        received += await stream.receive_some(size - len(received))
    return received


async def _shake(stream: trio.SocketStream, identity: Identity) -> handshake.Keys:
    connector = Connector(identity, 0)
    await stream.send_all(connector.greeting())
    proof, keys = connector.finish(await _exactly(stream, ANSWER_SIZE))
    await stream.send_all(proof)
    return keys


async def _hear_out(stream: trio.SocketStream) -> None:
    """Whatever it is told, in the end it is hung up on."""
    try:
        while await stream.receive_some(1000):
            pass
    except trio.BrokenResourceError:
        pass


async def _knock(address: tuple[str, int]) -> trio.SocketStream:
    while True:
        try:
            return await trio.open_tcp_stream(*address)
        except OSError:
            await trio.sleep(0.01)


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.__name__)
def test_a_stranger_is_turned_away_and_the_right_one_is_let_in(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mesh, "HANDSHAKE", 0.3)
    address = ("127.0.0.1", free_ports())

    async def meet() -> None:
        done = trio.Event()

        async def strange() -> None:
            async with await _knock(address) as stream:
                await stranger(stream)
                await _hear_out(stream)
            done.set()

        async def right() -> None:
            await done.wait()
            pipes = await mesh.connect_all(CONNECTOR, ("127.0.0.1", 1), {0: address}, None, HANG, str)
            pipe, keys = pipes[0]
            await pipe.send_some([FrameEncoder(keys.sending).encode(b"\x92\x90\x90")])
            await pipe.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(strange)
            nursery.start_soon(right)
            pipes = await mesh.connect_all(LISTENER, address, {1: ("127.0.0.1", 1)}, None, HANG, str)
        assert set(pipes) == {1}
        pipe, keys = pipes[1]
        with pytest.RaisesGroup(PeerLost, allow_unwrapped=True):
            await Link(pipe, keys, 1).read(lambda messages: None)  # a good frame, and then the end
        await pipe.close()

    with failsafe(HANG):
        trio.run(meet)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("turned away a connection from 127.0.0.1: ")
    assert STRANGERS[stranger] in lines[0]


def test_strangers_alone_are_not_enough(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(mesh, "HANDSHAKE", 0.2)
    address = ("127.0.0.1", free_ports())

    async def stay() -> None:
        async with await _knock(address) as stream:
            await _hear_out(stream)

    async def meet() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(stay)
            await mesh.connect_all(LISTENER, address, {1: ("127.0.0.1", 1)}, None, 0.6, lambda n: f"worker {n}")

    with failsafe(HANG), pytest.raises(ExceptionGroup) as caught:
        trio.run(meet)
    (error,) = caught.value.exceptions
    assert isinstance(error, dataflow.DataflowError) and "still missing worker 1" in str(error)


def test_a_flood_of_strangers_is_a_few_lines_and_nobody_has_to_read_them() -> None:
    # Each gives another reason, so that no two lines would be the same; and the pipe of our standard error is full.
    address = ("127.0.0.1", free_ports())
    read, write = os.pipe()
    os.set_blocking(write, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(write, bytes(4096))
    os.set_blocking(write, True)
    stream = open(write, "w")  # noqa: SIM115
    printer = Printer(stream)

    async def meet() -> None:
        done = trio.Event()

        async def flood() -> None:
            for number in range(300):
                async with await _knock(address) as stranger:
                    await stranger.send_all(Connector(CONNECTOR, number + 1).greeting())
                    await _hear_out(stranger)
            done.set()

        async def right() -> None:
            await done.wait()
            pipes = await mesh.connect_all(CONNECTOR, ("127.0.0.1", 1), {0: address}, None, HANG, str)
            await pipes[0][0].close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood)
            nursery.start_soon(right)
            pipes = await mesh.connect_all(LISTENER, address, {1: ("127.0.0.1", 1)}, None, HANG, str, printer)
        assert set(pipes) == {1}
        await pipes[1][0].close()

    with failsafe(HANG):
        trio.run(meet)  # and nobody has read a line yet
    with open(read, "rb") as pipe:
        pipe.read(filled)
        printer.finish()
        stream.close()
        lines = pipe.read().decode().splitlines()
    assert len(lines) == 5, lines
    assert lines[2] == "turned away a connection from 127.0.0.1: the peer looks for worker 3, and this is worker 0"
    assert lines[3].startswith("turned away 100 connections from 127.0.0.1 so far, the last one: ")
    assert lines[4] == "turned away 300 connections from 127.0.0.1"


def test_silent_strangers_do_not_keep_the_right_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # They stay for as long as they like; whoever has stayed longest makes room.
    monkeypatch.setattr(mesh, "_AT_ONCE", 4)
    monkeypatch.setattr(mesh, "HANDSHAKE", HANG)
    address = ("127.0.0.1", free_ports())

    async def meet() -> None:
        async def stay(left: trio.abc.SendChannel[None]) -> None:
            async with await _knock(address) as stream:
                await _hear_out(stream)
            await left.send(None)

        async def right(leavers: trio.abc.ReceiveChannel[None]) -> None:
            for _ in range(16):  # of 20: four may stay
                await leavers.receive()
            pipes = await mesh.connect_all(CONNECTOR, ("127.0.0.1", 1), {0: address}, None, HANG, str)
            await pipes[0][0].close()

        left, leavers = trio.open_memory_channel[None](20)
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(stay, left)
            nursery.start_soon(right, leavers)
            pipes = await mesh.connect_all(LISTENER, address, {1: ("127.0.0.1", 1)}, None, HANG, str)
            await pipes[1][0].close()
            nursery.cancel_scope.cancel()

    with failsafe(HANG / 2):
        trio.run(meet)


def test_what_is_said_and_kept_about_strangers_is_bounded() -> None:
    strangers = Strangers()
    lines = [strangers.turned_away(f"10.0.{n % 200}.1", f"reason {n}\x1b[2J") for n in range(20_000)]
    said = [line for line in lines if line is not None]
    assert len(said) < 64 * 4 + 10 and len(strangers.summary()) <= 65
    assert any("from other addresses so far" in line for line in said)
    assert not any("\x1b" in line for line in said)
    assert len(strangers._counts) == len(strangers._told) == 65


def test_a_false_listener_is_found_out() -> None:
    address = ("127.0.0.1", free_ports())

    async def meet() -> None:
        async def echo(stream: trio.SocketStream) -> None:
            greeting = await _exactly(stream, GREETING_SIZE)
            await stream.send_all(greeting + bytes(PROOF_SIZE))

        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_tcp, echo, address[1])
            await mesh.connect_all(CONNECTOR, ("127.0.0.1", 1), {0: address}, None, HANG, str)

    with failsafe(HANG), pytest.raises(ExceptionGroup) as caught:
        trio.run(meet)
    assert caught.group_contains(HandshakeError, match=f"127.0.0.1:{address[1]}")


# ---------------------------------------------------------------------------------------------- in the middle of it all


def frame(worker: dataflow.Worker, header: bytes, body: int = 0) -> bytes:
    """A frame with the right seal, by somebody who has taken over a worker."""
    return pump_of(worker).transport._links[0]._encoder.encode(header, body)  # type: ignore[union-attr]


NONSENSE: dict[str, Callable[[dataflow.Worker], bytes]] = {
    "garbage": lambda worker: b"garbage" * 100,
    "a frame of somebody else's": lambda worker: FrameEncoder(b"another key").encode(b"\x92\x90\x90"),
    "a body of terabytes": lambda worker: b"MdF1" + bytes(4) + (1 << 42).to_bytes(8, "little") + bytes(12),
    "a replayed frame": lambda worker: frame(worker, b"\x92\x90\x90") * 2,
    "a header that is none": lambda worker: frame(worker, b"\xc1"),
    "a message that is none": lambda worker: frame(worker, b"\x92\x90\x91\x91\x63"),
    "a message of the wrong kind": lambda worker: frame(worker, b"\x92\x90\x91\x92\x05\xa1x"),
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
def test_a_worker_that_talks_nonsense_is_named(nonsense: Callable[[dataflow.Worker], bytes]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        await trio.sleep(0.01)
        if worker.index == 1:
            assert pump_of(worker).transport is not None
            await pump_of(worker).transport._links[0].pipe.send_some([nonsense(worker)])  # type: ignore[union-attr]
        await trio.sleep_forever()

    with failsafe(HANG), pytest.raises(FrameError, match="worker 1") as caught:
        dataflow.execute(main, workers=3)
    assert "worker 2" not in f"{caught.value}{notes(caught.value)}"
