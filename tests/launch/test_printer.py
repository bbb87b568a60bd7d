"""Output that nobody reads for a while: those who print wait, nobody else does, and nothing is lost."""

from __future__ import annotations

import io
import os
import re
import select
import signal

import pytest
import trio
import trio.testing

from dataflow.launch.printer import Printer
from tests.engine.harness import failsafe
from tests.launch.arena import SOON, Arena, wait_until

LINE = "x" * 999 + "\n"


def test_everything_is_written_in_order_however_late_it_is_read() -> None:
    read, write = os.pipe()

    async def main() -> str:
        printer = Printer(stream)
        count = 0
        while not printer.full:
            printer.put(f"{count} {LINE}")
            count += 1
        waiting = trio.Event()

        async def go_on() -> None:
            waiting.set()
            await printer.room()
            printer.put("last\n")
            os.close(await trio.to_thread.run_sync(finish))

        def finish() -> int:
            assert printer.finish() is None
            return write

        out = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            await waiting.wait()
            while chunk := await trio.to_thread.run_sync(os.read, read, 1 << 16):
                out += chunk
        *lines, last = out.decode().splitlines()
        assert lines == [f"{number} {LINE[:-1]}" for number in range(count)]
        return last

    with open(write, "w", closefd=False) as stream, failsafe(10):
        assert trio.run(main) == "last"
    os.close(read)


def test_a_reader_that_goes_away_is_told_of_at_once() -> None:
    read, write = os.pipe()

    async def main() -> None:
        printer = Printer(stream)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(printer.watch)
            await trio.testing.wait_all_tasks_blocked()
            os.close(read)
            printer.put("nobody hears this\n")

    with open(write, "w") as stream, failsafe(10), pytest.RaisesGroup(BrokenPipeError):
        trio.run(main)


def test_after_trouble_nothing_is_written_and_nobody_waits() -> None:
    with open("/dev/full", "w") as stream, failsafe(10):
        printer = Printer(stream)
        for _ in range(1000):
            printer.put(LINE)
        trouble = printer.finish()
        assert isinstance(trouble, OSError) and "No space left" in str(trouble)
        assert not printer.full
        trio.run(printer.room)


def test_a_stream_of_the_program_s_own() -> None:
    stream = io.StringIO()
    printer = Printer(stream)
    printer.put("one\n")
    printer.put("zwölf\n")
    assert printer.finish() is None
    assert stream.getvalue() == "one\nzwölf\n"


TALKATIVE = """
    async def main(worker):
        for number in range(10_000):
            print(worker.index, number, "x" * 100)
            await trio.lowlevel.checkpoint()
"""


def test_a_reader_that_comes_late_gets_everything(arena: Arena) -> None:
    arena.write("program.py", TALKATIVE)
    read, write = os.pipe()
    program = arena.cli("run", "program:main", "--workers", "2", stdout=write)
    wait_full(write)
    os.close(write)
    with open(read) as pipe:
        lines = pipe.read().splitlines()
    assert program.end().status == 0
    for index in range(2):
        mine = [line for line in lines if line.startswith(f"{index} ")]
        assert mine == [f"{index} {number} {'x' * 100}" for number in range(10_000)]


def test_an_interrupt_ends_the_workers_though_nobody_reads(arena: Arena) -> None:
    arena.write("program.py", TALKATIVE)
    read, write = os.pipe()
    program = arena.cli("run", "program:main", "--workers", "2", stdout=write)
    wait_full(write)
    os.close(write)
    program.interrupt()
    wait_until(lambda: not program.zygotes(), "the end of the workers")
    os.kill(program.pid, signal.SIGINT)  # the last words need not be waited for
    ended = program.end()
    os.close(read)
    assert ended.status == 130 and ended.seconds < SOON
    assert re.fullmatch(r"(dataflow: interrupted\n)+", ended.err), ended.err


def wait_full(pipe: int) -> None:
    """Waits until nothing more can be written to a pipe: whoever goes on writing waits.

    How many bytes that are depends on how they were written, since a pipe holds so many pages, full or not.
    """
    wait_until(lambda: not select.select([], [pipe], [], 0)[1], "a full pipe")
