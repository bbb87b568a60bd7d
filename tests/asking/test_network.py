"""The door on the network: who knows the secret is answered; nobody else learns or hurts anything."""

from __future__ import annotations

import random
import shutil
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial

import pytest
import trio
import trio.testing

from dataflow.asking.client import NoSuchRun, ask_run
from dataflow.asking.elsewhere import Elsewhere
from dataflow.asking.messages import LONGEST_QUESTION, Question, Refused, encode_answer, encode_question
from dataflow.asking.network import ANSWERS, CONTROL, ControlAddress, serve_network
from dataflow.asking.serving import Bounds
from dataflow.comm import codec
from dataflow.comm.frames import FrameDecoder, FrameEncoder, FrameLimits
from dataflow.comm.handshake import ANSWER_SIZE, ASKER, RUN, Connector, Identity, Keys, cluster_digest
from dataflow.launch.hosts import ClusterError, Tls
from tests.comm.rig import certificates

SECRET, OTHER = b"a secret for tests only", b"another secret, for tests"
ME = Identity(SECRET, CONTROL, ASKER)


class Served:
    """A door that is open."""

    def __init__(self, port: int, open: AsyncExitStack) -> None:
        self.port = port
        self._open = open

    async def connect(self) -> trio.SocketStream:
        return await self._open.enter_async_context(await trio.open_tcp_stream("127.0.0.1", self.port))

    async def known(self, me: Identity = ME) -> tuple[trio.SocketStream, Keys]:
        """A connection on which the secret was proved."""
        stream = await self.connect()
        connector = Connector(me, RUN)
        await stream.send_all(connector.greeting())
        proof, keys = connector.finish(await _exactly(stream, ANSWER_SIZE))
        await stream.send_all(proof)
        return stream, keys

    async def ask(
        self, secret: bytes = SECRET, tls: Tls | None = None, host: str = "127.0.0.1", **said: object
    ) -> object:
        run = Elsewhere((host, self.port), secret, tls)
        return await trio.to_thread.run_sync(partial(ask_run, run, Question("who", said), 20.0))


def served(test: Callable[[Served], Awaitable[None]], bounds: Bounds | None = None, tls: Tls | None = None) -> None:
    """Runs a test against a door; at the end somebody asks well."""

    async def respond(question: Question) -> bytes:
        return encode_answer([question.name, dict(question.arguments)])

    async def main() -> None:
        control = ControlAddress(("127.0.0.1", 0), SECRET, tls)
        with control.listen() as listener, trio.fail_after(60):
            async with trio.open_nursery() as nursery, AsyncExitStack() as open:
                nursery.start_soon(serve_network, listener, control, respond, bounds)
                door = Served(listener.getsockname()[1], open)
                await test(door)
                host = "127.0.0.1" if tls is None else "localhost"
                assert await door.ask(SECRET, tls, host, a=1) == ["who", {"a": 1}]
                nursery.cancel_scope.cancel()

    trio.run(main)


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = await stream.receive_some(size - len(received))
        assert chunk, "the connection has ended"
        received += chunk
    return received


async def ends(stream: trio.SocketStream) -> bool:
    """Whether the other side leaves without another word."""
    try:
        return not await stream.receive_some()
    except trio.BrokenResourceError:
        return True


async def hear(stream: trio.SocketStream, keys: Keys) -> object:
    decoder = FrameDecoder(keys.receiving, ANSWERS)
    while (frame := decoder.take()) is None:
        chunk = await stream.receive_some()
        assert chunk, "the connection has ended"
        decoder.feed(bytes(chunk))
    return codec.decode(frame.header)


def test_who_knows_the_secret_is_answered_however_long_it_is() -> None:
    async def test(door: Served) -> None:
        assert await door.ask(x="y" * 60000) == ["who", {"x": "y" * 60000}]
        with pytest.raises(NoSuchRun, match="over the limit of 65536"):
            await door.ask(x="y" * LONGEST_QUESTION)

    served(test)


def test_who_does_not_know_it_is_not(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither side believes the other; one that goes on regardless is found out as well."""

    async def test(door: Served) -> None:
        with pytest.raises(NoSuchRun, match="the run does not know the secret: compare the files of --secret"):
            await door.ask(OTHER)
        stream = await door.connect()
        await stream.send_all(Connector(ME, RUN).greeting())
        await _exactly(stream, ANSWER_SIZE)
        await stream.send_all(bytes(32))
        assert await ends(stream)

    served(test)
    said = capfd.readouterr().err
    assert "it may have another secret (compare the files of --secret)" in said
    assert "whoever calls themselves a client does not know the secret" in said


def test_a_proof_cannot_be_used_again() -> None:
    async def test(door: Served) -> None:
        first = await door.connect()
        connector = Connector(ME, RUN)
        await first.send_all(connector.greeting())
        proof, keys = connector.finish(await _exactly(first, ANSWER_SIZE))
        question = FrameEncoder(keys.sending).encode(encode_question(Question("who")))
        await first.send_all(proof + question)
        assert await hear(first, keys) == [1, True, ["who", {}]]
        second = await door.connect()
        await second.send_all(connector.greeting())
        await _exactly(second, ANSWER_SIZE)
        await second.send_all(proof + question)
        assert await ends(second)

    served(test)


@pytest.mark.parametrize("seed", range(3))
def test_garbage_halves_and_what_others_say(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(seed)
    greeting = Connector(ME, RUN).greeting()
    damaged = bytearray(greeting)
    damaged[chance.randrange(12)] ^= 1 << chance.randrange(8)
    of_worker = Connector(Identity(SECRET, cluster_digest("hosts"), 1), 0).greeting()

    async def test(door: Served) -> None:
        http = b"GET /metrics HTTP/1.1\r\nHost: here\r\nUser-Agent: something that goes on for some time\r\n\r\n"
        for said in (chance.randbytes(500), http, bytes(damaged), of_worker):
            stream = await door.connect()
            await stream.send_all(said)
            assert await ends(stream)
        for cut in (0, 1, chance.randrange(2, len(greeting))):  # who leaves in the middle
            stream = await door.connect()
            await stream.send_all(greeting[:cut])
            await stream.aclose()
        stream, keys = await door.known()  # half a question
        await stream.send_all(FrameEncoder(keys.sending).encode(encode_question(Question("who")))[:-3])
        await stream.aclose()

    served(test)
    assert (
        "--control turned away a connection from 127.0.0.1: whoever connected does not speak" in capfd.readouterr().err
    )


def test_who_knows_the_secret_and_speaks_badly() -> None:
    """What is garbled, too long or in a body ends the connection; what is no question is refused."""

    async def test(door: Served) -> None:
        whole = encode_question(Question("who"))
        for message in (b"", whole[:-1], codec.encode([1, 2]), codec.encode([2, "who", {}])):
            stream, keys = await door.known()
            await stream.send_all(FrameEncoder(keys.sending).encode(message))
            answer = await hear(stream, keys)
            assert isinstance(answer, list) and answer[:2] == [1, False]
        limits = FrameLimits(1 << 40, 1 << 40)
        for frame in (
            lambda encoder: bytes([*encoder.encode(whole)[:-1], 0]),
            lambda encoder: encoder.encode(whole, 1 << 30),
            lambda encoder: encoder.encode(bytes(LONGEST_QUESTION + 1)),
            lambda encoder: (encoder.encode(whole), encoder.encode(whole))[1],  # the first is missing
        ):
            stream, keys = await door.known()
            with suppress(trio.BrokenResourceError):  # it may leave before all of it was sent
                await stream.send_all(frame(FrameEncoder(keys.sending, limits)))
            assert await ends(stream)

    served(test)


def test_the_slow_are_left_and_lock_nobody_out(capfd: pytest.CaptureFixture[str]) -> None:
    async def test(door: Served) -> None:
        silent = [await door.connect() for _ in range(70)]  # more than there may be
        assert await door.ask(a=1) == ["who", {"a": 1}]
        stream, _ = await door.known()  # and asks nothing
        for each in (*silent, stream):
            assert await ends(each)

    served(test, Bounds(seconds=0.5))
    assert "did not complete the handshake" in capfd.readouterr().err


def test_too_many_at_once_are_told() -> None:
    async def test(door: Served) -> None:
        with pytest.raises(Refused, match="asked by too many at once"):
            await door.ask()

    with pytest.raises(BaseExceptionGroup, match="nursery"):  # the last question of `served`, too
        served(test, Bounds(clients=0))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="TLS is not tested: no openssl to make certificates with")
def test_with_certificates() -> None:
    good, bad = certificates("good"), certificates("bad")

    async def test(door: Served) -> None:
        for tls in (None, Tls(bad.certificate, bad.key, good.authority), bad):
            with pytest.raises(NoSuchRun, match=r"A run with --cert wants|certificate"):
                await door.ask(SECRET, tls, "localhost")
        with pytest.raises(NoSuchRun, match="does not know the secret"):
            await door.ask(OTHER, good, "localhost")

    served(test, Bounds(seconds=2.0), good)


def test_nobody_there_and_somebody_else_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        run = Elsewhere(("127.0.0.1", port), SECRET)
        assert run == f"127.0.0.1:{port}" and SECRET.decode() not in repr(run)
        with pytest.raises(NoSuchRun, match=f"127.0.0.1:{port} did not answer within 0.2 seconds"):
            ask_run(run, Question("who"), 0.2)
        with pytest.raises(ClusterError, match=f"cannot listen on 127.0.0.1:{port} for --control"):
            ControlAddress(("127.0.0.1", port), SECRET).listen()
    with pytest.raises(NoSuchRun, match=f"no run can be reached at 127.0.0.1:{port}: Connection refused"):
        ask_run(run, Question("who"), 1.0)
    assert Elsewhere(("::1", 9), SECRET) == "[::1]:9"
    with pytest.raises(ClusterError, match="at least 16 bytes"):
        ControlAddress(("127.0.0.1", 1), b"short")
    assert SECRET.decode() not in repr(ControlAddress(("127.0.0.1", 1), SECRET))
