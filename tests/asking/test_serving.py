"""Those who ask badly, or are not allowed to: the run goes on, and others are answered."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import pytest
import trio
import trio.testing

from dataflow.asking import serving
from dataflow.asking.messages import (
    LONGEST_QUESTION,
    Question,
    Refused,
    decode_answer,
    encode_answer,
    encode_question,
)
from dataflow.asking.run import answer
from dataflow.asking.serving import Bounds, serve
from dataflow.comm import codec
from dataflow.errors import DataflowError
from dataflow.launch.framing import cut_message, frame

Connect = Callable[[], Awaitable[trio.SocketStream]]


def attended(test: Callable[[Connect], Awaitable[None]], bounds: Bounds | None = None) -> None:
    """Runs a test against a served socket, on a clock that jumps when nobody can go on."""

    async def respond(question: Question) -> bytes:
        return encode_answer([question.name, dict(question.arguments)])

    async def main() -> None:
        with ExitStack() as stack, socket.socket(socket.AF_UNIX) as listener:
            listener.bind("")  # a name of no file, which the system chooses
            listener.listen(16)

            async def connect() -> trio.SocketStream:
                client = stack.enter_context(trio.socket.socket(socket.AF_UNIX))
                await client.connect(listener.getsockname())
                return trio.SocketStream(client)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve, listener, respond, bounds)
                await test(connect)
                await _asks_well(connect)
                nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.01))


async def _asks_well(connect: Connect) -> None:
    client = await connect()
    await client.send_all(frame(encode_question(Question("who", {"a": 1}))))
    assert decode_answer(await hear(client)) == ["who", {"a": 1}]


async def hear(client: trio.SocketStream) -> bytes:
    received = bytearray()
    while (message := cut_message(received)) is None:
        chunk = await client.receive_some()
        assert chunk, "the connection has ended"
        received += chunk
    return message


async def ends(client: trio.SocketStream) -> bool:
    """Whether the other side leaves without a word."""
    try:
        return not await client.receive_some()
    except trio.BrokenResourceError:
        return True


def test_silence_is_left_in_the_end() -> None:
    async def test(connect: Connect) -> None:
        client = await connect()
        before = trio.current_time()
        assert await ends(client)
        assert 5.0 <= trio.current_time() - before < 6.0

    attended(test)


def test_one_who_says_it_byte_by_byte_is_left_in_the_end() -> None:
    async def test(connect: Connect) -> None:
        client, said = await connect(), 0

        async def drip() -> None:
            nonlocal said
            for byte in frame(encode_question(Question("who", {"x": "y" * 100}))):
                await client.send_all(bytes([byte]))
                said += 1
                await trio.sleep(1.0)

        with pytest.raises(trio.BrokenResourceError):
            await drip()
        assert said < 10

    attended(test)


@pytest.mark.parametrize("length", [LONGEST_QUESTION + 1, 1 << 40, (1 << 64) - 1])
def test_a_huge_length_is_left_at_once(length: int) -> None:
    async def test(connect: Connect) -> None:
        client = await connect()
        before = trio.current_time()
        await client.send_all(struct.pack("<Q", length) + b"x" * 100)
        assert await ends(client)
        assert trio.current_time() == before

    attended(test)


def test_one_who_ends_in_the_middle() -> None:
    async def test(connect: Connect) -> None:
        for cut in (0, 3, 8, 12):
            client = await connect()
            await client.send_all(frame(encode_question(Question("who")))[:cut])
            await client.aclose()

    attended(test)


@pytest.mark.parametrize("seed", range(5))
def test_garbage_is_refused(seed: int) -> None:
    chance = random.Random(seed)
    whole = encode_question(Question("save", {"name": "x", "timeout": 1.0}))
    damaged = bytearray(whole)
    damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)

    async def test(connect: Connect) -> None:
        nested: object = 0
        for _ in range(60):
            nested = (nested,)
        for message in (chance.randbytes(50), b"", whole[:-1], codec.encode(nested), codec.encode([1, 2])):
            client = await connect()
            await client.send_all(frame(message))
            with pytest.raises(Refused):
                decode_answer(await hear(client))
        client = await connect()
        await client.send_all(frame(bytes(damaged)))
        await hear(client)  # of whatever kind

    attended(test)


def test_one_of_another_version_is_told() -> None:
    async def test(connect: Connect) -> None:
        client = await connect()
        await client.send_all(frame(codec.encode([2, "who", {}])))
        with pytest.raises(Refused, match="this run speaks version 1 of the protocol"):
            decode_answer(await hear(client))

    attended(test)


def test_one_who_does_not_take_the_answer_is_left() -> None:
    async def test(connect: Connect) -> None:
        client = await connect()
        await client.send_all(frame(encode_question(Question("who", {"x": "y" * 60000}))))
        client.socket.shutdown(socket.SHUT_RD)
        await trio.sleep(6.0)

    attended(test)


def test_many_at_once_leave_room_again() -> None:
    async def test(connect: Connect) -> None:
        clients = [await connect() for _ in range(10)]
        await trio.testing.wait_all_tasks_blocked(0.005)
        turned_away = await connect()
        assert await ends(turned_away)
        for client in clients:
            assert await ends(client)

    attended(test, Bounds(seconds=3.0, clients=10))


def test_somebody_else_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(connect: Connect) -> None:
        monkeypatch.setattr(serving, "_CREDENTIALS", _Never())
        client = await connect()
        await client.send_all(frame(encode_question(Question("who"))))
        assert await ends(client)
        monkeypatch.undo()

    attended(test)


class _Never:
    """Credentials of a user who is neither us nor root."""

    size = 12

    def unpack(self, data: bytes) -> tuple[int, int, int]:
        pid, _, group = struct.unpack("=iII", data)
        return pid, 12345, group


def test_answers_that_fail_are_told_and_hurt_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    async def refuses(to: None, arguments: object) -> object:
        raise DataflowError("not now")

    async def breaks(to: None, arguments: object) -> object:
        raise ZeroDivisionError("oh")

    async def odd(to: None, arguments: object) -> object:
        return object()

    known = {"refuses": refuses, "breaks": breaks, "odd": odd}

    def ask(name: str) -> str:
        with pytest.raises(Refused) as caught:
            decode_answer(trio.run(answer, Question(name), None, known))
        return str(caught.value)

    assert ask("refuses") == "not now"
    assert ask("nothing") == "this run does not know 'nothing'; it knows: breaks, odd, refuses"
    assert not capsys.readouterr().err
    assert ask("breaks") == "'breaks' failed in the run: ZeroDivisionError: oh"
    assert "ZeroDivisionError: oh" in capsys.readouterr().err
    assert ask("odd").startswith("'odd' failed in the run: TypeError: ")


def test_whoever_waits_for_an_answer_when_the_serving_ends_is_told() -> None:
    async def never(question: Question) -> bytes:
        await trio.sleep_forever()
        raise AssertionError(question)

    async def main() -> None:
        with socket.socket(socket.AF_UNIX) as listener, trio.socket.socket(socket.AF_UNIX) as client:
            listener.bind("")
            listener.listen(16)
            await client.connect(listener.getsockname())
            await client.send(frame(encode_question(Question("who", {}))))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve, listener, never)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            message = cut_message(bytearray(await client.recv(1000)), LONGEST_QUESTION)
            assert message is not None
            with pytest.raises(Refused, match="goes back to its last snapshot, or ends: ask again"):
                decode_answer(message)

    trio.run(main)
