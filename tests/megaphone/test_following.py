"""Following a file that grows and a pipe whose writers come and go, until told to stop. Under a virtual clock, except
where the other end is another process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

import dataflow
import megaphone
from dataflow.errors import InputClosed, TimeError
from dataflow.testing import simulate
from megaphone.control import tailing
from megaphone.control.files import follow
from tests.engine.harness import failsafe


def line(time: int, worker: int = 1) -> str:
    return json.dumps({"time": time, "bin": 0, "worker": worker})


class Control:
    """A control input of which a test sees what was sent."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.refused: list[tuple[str, str]] = []
        self.told = trio.Event()
        self.closed = False

    def send(self, updates: list[Any], at: int) -> None:
        if self.closed:
            raise InputClosed("control is closed")
        if at < 0:
            raise TimeError(f"control is at 0 already: nothing can be sent at {at}")
        self.sent.append(at)

    def refuse(self, error: Exception, text: str) -> None:
        self.refused.append((str(error), text))
        self.told.set()

    async def has(self, *times: int) -> None:
        """Waits until these were sent, and nothing else."""
        while self.sent != list(times):
            assert self.sent == list(times)[: len(self.sent)], self.sent
            await trio.sleep(0.01)


@asynccontextmanager
async def following(path: Path, **options: Any) -> AsyncGenerator[Control, None]:
    """Follows beside a test, which then stops it; it must end by itself."""
    control, stop = Control(), trio.Event()
    anything: Any = control
    with trio.fail_after(1_000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(follow, anything, path, control.refuse, stop=stop, **options))
            yield control
            stop.set()


def under_a_virtual_clock(test: Callable[[], Awaitable[None]]) -> None:
    with failsafe(30):
        trio.run(test, clock=trio.testing.MockClock(autojump_threshold=0))


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


# ------------------------------------------------------------------------------------------------------------- a file


def test_a_file_that_grows_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "wishes"
    path.write_text(line(1) + "\n")

    async def test() -> None:
        async with following(path) as control:
            await control.has(1)
            for time in range(2, 6):
                append(path, line(time) + "\n")
                await control.has(*range(1, time + 1))
            append(path, f"{line(6)}\n{line(7)}\n")
            await control.has(*range(1, 8))
        assert not control.refused

    under_a_virtual_clock(test)


def test_half_a_line_waits_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "wishes"
    path.write_text(line(1)[:7])

    async def test() -> None:
        async with following(path) as control:
            for piece in (line(1)[7:12], line(1)[12:]):
                await trio.sleep(5)
                append(path, piece)
            await trio.sleep(5)
            assert not control.sent and not control.refused, "it is whole, but that is not known without its newline"
            append(path, "\n" + line(2)[:9])
            await control.has(1)
        assert [text for _, text in control.refused] == [line(2)[:9]], "half a line at the end is told"

    under_a_virtual_clock(test)


@pytest.mark.parametrize("left", ["", line(2)[:9], line(2)], ids=["whole", "half a line", "no newline"])
def test_a_truncated_file_is_read_from_its_beginning(left: str, tmp_path: Path) -> None:
    path = tmp_path / "wishes"
    path.write_text(line(1) + "\n" + left)
    before = [1, 2] if left == line(2) else [1]

    async def test() -> None:
        async with following(path) as control:
            await control.has(1)
            path.write_text("")
            await trio.sleep(5)
            append(path, line(3) + "\n")
            await control.has(*before, 3)
        assert [text for _, text in control.refused] == ([left] if left == line(2)[:9] else [])

    under_a_virtual_clock(test)


def test_a_file_that_is_replaced_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    path, new = tmp_path / "wishes", tmp_path / "new"
    path.write_text(line(1) + "\n")

    async def test() -> None:
        async with following(path) as control:
            await control.has(1)
            append(path, line(2) + "\n" + line(9)[:5])
            new.write_text(line(3) + "\n")
            new.replace(path)  # before anybody could see what was appended
            await control.has(1, 2, 3)
            path.unlink()
            await trio.sleep(5)
            path.write_text(line(4) + "\n")
            await control.has(1, 2, 3, 4)
        assert [text for _, text in control.refused] == [line(9)[:5]], "and spoils nothing of what comes after it"

    under_a_virtual_clock(test)


def test_until_the_end_it_reads_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "wishes"
    path.write_text(f"{line(1)}\n\nmove it\n{line(-1)}\n{line(2)}")

    async def test() -> None:
        control: Any = Control()
        await follow(control, path, control.refuse, until_end=True)
        assert control.sent == [1, 2]
        assert [text for _, text in control.refused] == ["move it", line(-1)]

    under_a_virtual_clock(test)


# ------------------------------------------------------------------------------------------------------------- a pipe


def write(path: Path, text: str) -> None:
    """A writer that comes, writes and goes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def test_a_pipe_does_not_end_with_its_first_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def test() -> None:
        async with following(path) as control:
            await trio.sleep(5)
            for time in range(1, 6):
                write(path, line(time) + "\n")
                await control.has(*range(1, time + 1))
                await trio.sleep(5)
            write(path, line(6) + "\n")
            write(path, line(7) + "\n")  # before anybody has seen that the other has gone
            await control.has(*range(1, 8))
        assert not control.refused

    under_a_virtual_clock(test)


def test_a_line_of_a_pipe_is_over_when_its_writer_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def test() -> None:
        async with following(path) as control:
            await trio.sleep(1)
            write(path, line(1))
            await control.has(1)
            write(path, line(2)[:9])
            await control.told.wait()
            write(path, line(3) + "\n")
            await control.has(1, 3)
        assert [text for _, text in control.refused] == [line(2)[:9]], "and spoils nobody else's"

    under_a_virtual_clock(test)


def test_half_a_line_of_a_pipe_waits_while_somebody_writes(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def test() -> None:
        async with following(path) as control:
            await trio.sleep(1)
            writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            for piece in (line(1)[:9], line(1)[9:]):
                os.write(writer, piece.encode())
                await trio.sleep(5)
            assert not control.sent and not control.refused
            os.write(writer, b"\n")
            await control.has(1)
            os.close(writer)

    under_a_virtual_clock(test)


def test_a_pipe_that_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def test() -> None:
        async with following(path) as control:
            await trio.sleep(1)
            write(path, line(1) + "\n")
            path.unlink()
            await control.has(1)
            await trio.sleep(5)
            os.mkfifo(path)
            await trio.sleep(5)
            write(path, line(2) + "\n")
            await control.has(1, 2)

    under_a_virtual_clock(test)


def test_other_processes_write_to_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def test() -> None:
        async with following(path) as control:
            for time in range(1, 4):
                await trio.run_process(["sh", "-c", f"echo '{line(time)}' > {path}"], stdout=subprocess.DEVNULL)
                await control.has(*range(1, time + 1))

    with failsafe(30):
        trio.run(test)


# -------------------------------------------------------------------------------------------------------------- its end


@pytest.mark.parametrize("pipe", [False, True], ids=["file", "pipe"])
def test_it_ends_when_the_control_input_is_closed(pipe: bool, tmp_path: Path) -> None:
    path = tmp_path / "wishes"
    os.mkfifo(path) if pipe else path.write_text("")

    async def test() -> None:
        control: Any = Control()
        with trio.fail_after(100):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow, control, path, control.refuse)
                await trio.sleep(5)
                control.closed = True

    under_a_virtual_clock(test)


def test_a_line_that_comes_after_the_end_of_the_input_is_told(tmp_path: Path) -> None:
    path = tmp_path / "wishes"
    path.write_text(line(1) + "\n")

    async def test() -> None:
        control: Any = Control()
        control.closed = True
        await follow(control, path, control.refuse)
        assert control.refused == [("control is closed", line(1))]

    under_a_virtual_clock(test)


@pytest.mark.parametrize("pipe", [False, True], ids=["file", "pipe"])
def test_it_waits_and_does_not_look_all_the_time(pipe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wishes"
    os.mkfifo(path) if pipe else path.write_text("")
    looks: list[float] = []
    read = tailing._Opened.read

    def counted(self: Any) -> bytes | None:
        looks.append(trio.current_time())
        return read(self)

    monkeypatch.setattr(tailing._Opened, "read", counted)

    async def test() -> None:
        async with following(path) as control:
            await trio.sleep(20)
            if pipe:
                write(path, line(1) + "\n")  # a writer that has gone must not keep us awake
                await control.has(1)
            await trio.sleep(20)
        assert 100 < len(looks) <= 40 / tailing.PAUSE + 20

    under_a_virtual_clock(test)


def test_what_is_neither_a_file_nor_a_pipe(tmp_path: Path) -> None:
    control: Any = Control()
    for path in ("/dev/null", str(tmp_path)):
        with pytest.raises(megaphone.ControlError, match=f"{path} can be followed if it is a file or a pipe"):
            trio.run(follow, control, path)
    with pytest.raises(FileNotFoundError):
        trio.run(follow, control, tmp_path / "nothing")


def test_a_line_without_end_is_refused_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("megaphone.control.files.LONGEST", 1_000)
    path = tmp_path / "wishes"
    path.write_text("7" * 300_000 + "\n" + line(1) + "\n")
    control: Any = Control()
    trio.run(partial(follow, control, path, control.refuse, until_end=True))
    assert control.sent == [1] and len(control.refused) == 5


def test_a_refused_line_cannot_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wishes"
    path.write_bytes(b"\x1b]0;gotcha\x07 move\r " + "é".encode() + b"x" * 1_000 + b"\n")
    anything: Any = Control()
    trio.run(partial(follow, anything, path, until_end=True))
    said = capsys.readouterr().err
    assert said.startswith("refused: \\x1b]0;gotcha\\x07 move\\r éxxx") and "\x1b" not in said and len(said) < 600


# ---------------------------------------------------------------------------------------------------- with a dataflow


async def steered(worker: dataflow.Worker, path: Path) -> Any:
    """Worker 0 follows a file to which the same program writes as it goes."""
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=lambda *_: (), bins=4)
        probe = counts.probe()
    seen = []
    async with trio.open_nursery() as nursery:
        if worker.index == 0:
            nursery.start_soon(megaphone.follow, control, path)
        for time in range(6):
            if worker.index == 0:
                append(path, json.dumps({"time": 2 * time + 1, "map": [time % 2] * 4}) + "\n")
                await trio.sleep(1)  # on the virtual clock: longer than between two looks
            for handle in (control, data):
                handle.advance_to(2 * time + 2)
            await probe.wait_passed(2 * time + 1)
            seen.append(counts.handle.configuration.tolist())
        nursery.cancel_scope.cancel()
    return seen


def test_a_dataflow_is_steered_by_a_file_as_it_grows(tmp_path: Path) -> None:
    for seed in range(3):
        path = tmp_path / f"wishes {seed}"
        path.write_text("")
        assert simulate(steered, path, workers=2, seed=seed) == [[[time % 2] * 4 for time in range(6)]] * 2


ODD: list[Any] = [
    None, True, "x", [], {}, [[]], ["x"], [1, [2]], {"a": 1}, -1, 0.5, 10**30, -(10**30), 2**63, 2**64, 1e308, "\ud800",
    float("nan"), float("inf"), [float("nan")], [{"a": 1}],
]  # fmt: skip


def test_no_line_can_raise_what_is_not_a_refusal(tmp_path: Path) -> None:
    """Whatever its members are, on rows and on columns, with keys that can be pinned and without."""
    entries: list[Any] = [{"time": odd, "bin": 0, "worker": 1} for odd in ODD]
    entries += [{"time": 5, "bin": odd, "worker": 1} for odd in ODD] + [{"time": 5, "map": odd} for odd in ODD]
    entries += [{"time": 5, name: 0, "worker": odd} for odd in ODD for name in ("bin", "key")]
    entries += [{"time": 5, "key": odd, "worker": 1} for odd in ODD] + [{"time": 5, "map": [0, odd]} for odd in ODD]
    path = tmp_path / "wishes"
    path.write_text("\n".join(map(json.dumps, entries)))

    @megaphone.fold(state={"n": "i8"}, output={"n": "i8"})
    def tally(key, state):  # type: ignore[no-untyped-def]
        state.n += 1
        return state.n

    async def main(worker: dataflow.Worker) -> list[int]:
        with worker.dataflow() as scope:
            handles = [scope.input(f"{kind} {number}") for number in range(3) for kind in ("control", "data")]
            (_, c0), (_, d0), (_, c1), (_, d1), (_, c2), (_, d2) = handles
            megaphone.unary(c0, d0, key=lambda k: k, fold=lambda *_: (), bins=2)
            megaphone.unary(c1, d1, key=lambda k: k, fold=lambda *_: (), bins=2, by_key=True)
            megaphone.state_machine(c2, d2, key="key", fold=tally, bins=2)
        refused: list[list[str]] = [[], [], []]
        for told, (handle, _) in zip(refused, handles[::2], strict=True):
            await megaphone.follow(handle, path, lambda error, text, told=told: told.append(text), until_end=True)  # type: ignore[misc]
        return [len(told) for told in refused]

    for none, rows, columns in simulate(main, workers=2, debug=True):
        assert 147 == len(entries) > none > columns >= rows > 120
