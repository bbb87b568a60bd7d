"""What workers print comes out in whole lines, in order per worker, whatever reads it."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from dataflow.launch.lines import LineAssembler
from tests.launch.arena import SOON, Arena

LINES = """
    async def main(worker):
        long = "x" * 200_000
        for n in range(300):
            stream = sys.stderr if n % 3 == 0 else sys.stdout
            print(worker.index, n, long if n % 50 == 1 else "short", "end", file=stream)
            if n % 10 == 0:
                await trio.lowlevel.checkpoint()
"""


def test_whole_lines_in_order_per_worker(arena: Arena) -> None:
    arena.write("program.py", LINES)
    ended = arena.cli("run", "program:main", "--workers", "4").end()
    assert ended.status == 0
    for text, numbers in ((ended.out, [n for n in range(300) if n % 3]), (ended.err, list(range(0, 300, 3)))):
        found: dict[int, list[int]] = {index: [] for index in range(4)}
        for line in text.splitlines():
            whole = re.fullmatch(r"(\d) (\d+) (short|x{200000}) end", line)
            assert whole, f"torn: {line[:60]}...{line[-60:]}"
            found[int(whole[1])].append(int(whole[2]))
        assert found == dict.fromkeys(range(4), numbers)


def test_prefixes(arena: Arena) -> None:
    arena.write(
        "program.py",
        """
        async def main(worker):
            print("one\\ntwo")
            print("a \\u2028 b \\x0c c \\r d")  # ends of lines for Python, not for a terminal
            print("no newline", end="")
        """,
    )
    ended = arena.cli("run", "program:main", "--workers", "2", "--prefix").end()
    assert ended.status == 0
    for index in range(2):
        mine = [line for line in ended.out.split("\n") if line.startswith(f"[worker {index}] ")]
        assert [line.removeprefix(f"[worker {index}] ") for line in mine] == [
            "one",
            "two",
            "a \u2028 b \x0c c \r d",
            "no newline",
        ]
    assert ended.out.count("[worker") == 8


def test_without_a_newline(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            print("no newline", end="")
            sys.stdout.flush()

        dataflow.execute(main, workers=3)
        print("done")
        """
    )
    assert program.end().out == "no newline\nno newline\nno newline\ndone\n"


def test_what_was_printed_before_a_crash_comes_out(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            print("last words of", worker.index)
            print("half a line", end="")
            sys.stdout.flush()
            if worker.index == 1:
                await trio.sleep(0.2)
                os.kill(os.getpid(), signal.SIGKILL)
            await trio.sleep_forever()

        dataflow.execute(main, workers=2)
        """
    )
    ended = program.end()
    assert sorted(ended.out.splitlines()) == ["half a line"] * 2 + ["last words of 0", "last words of 1"]


def test_bytes_that_are_no_text_and_text_that_the_terminal_does_not_know(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            os.write(1, b"raw \\xff\\n")
            print("grün \\ud800")

        dataflow.execute(main, workers=2)
        """,
        environment={"PYTHONIOENCODING": "ascii"},
    )
    ended = program.end()
    assert (ended.status, ended.err) == (0, "")
    assert sorted(ended.out.splitlines()) == ["gr\\xfcn \\ud800"] * 2 + ["raw \\xff"] * 2


def test_a_worker_reads_nothing_from_the_terminal(arena: Arena) -> None:
    ended = arena.script(
        """
        async def main(worker):
            return sys.stdin.read()

        print(dataflow.execute(main, workers=2))
        """
    ).end()
    assert ended.out == "['', '']\n"


# --------------------------------------------------------------------------------------------- when nobody reads it


TALKATIVE = """
    async def main(worker):
        while True:
            print("hello from", worker.index)
            await trio.lowlevel.checkpoint()
"""


def test_a_closed_pipe_ends_the_command_quietly(arena: Arena) -> None:
    arena.write("program.py", TALKATIVE)
    read, write = os.pipe()
    head = subprocess.Popen(["head", "-1"], stdin=read, stdout=subprocess.PIPE)
    program = arena.cli("run", "program:main", "--workers", "4", stdout=write)
    os.close(read)
    os.close(write)
    out, _ = head.communicate(timeout=30)
    program.mark_time()
    ended = program.end()
    assert out.startswith(b"hello from")
    assert ended.status != 0 and ended.seconds < SOON
    assert ended.err == ""


@pytest.mark.parametrize("where", ["pipe", "full disk"])
def test_all_workers_have_ended_when_execute_fails_to_print(arena: Arena, where: str) -> None:
    code = (
        TALKATIVE
        + """
    try:
        dataflow.execute(main, workers=4)
    except OSError as error:
        print(type(error).__name__, error.errno, file=sys.stderr)
    try:
        print("left", os.waitpid(-1, os.WNOHANG), file=sys.stderr)
    except ChildProcessError:
        print("nobody is left", file=sys.stderr)
    sys.stdout = None
"""
    )
    if where == "pipe":
        read, write = os.pipe()
        os.close(read)
    else:
        write = os.open("/dev/full", os.O_WRONLY)
    program = arena.script(code, stdout=write)
    os.close(write)
    ended = program.end()
    expected = "BrokenPipeError 32" if where == "pipe" else "OSError 28"
    assert ended.err.splitlines()[:2] == [expected, "nobody is left"], ended.err


def test_output_that_cannot_be_written_is_a_failure_even_at_the_end(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            print("one line")

        dataflow.execute(main, workers=2)
        """,
        stdout=os.open("/dev/full", os.O_WRONLY),
    )
    ended = program.end()
    assert ended.status != 0
    assert "No space left on device" in ended.err


# ---------------------------------------------------------------------------------------------------------- assembling


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_out_of_any_pieces(size: int) -> None:
    text = "eins\nzwölf\n\n  drei\r\nlast".encode()
    lines = LineAssembler()
    out = [lines.feed(text[i : i + size]) for i in range(0, len(text), size)]
    assert all(piece == "" or piece.endswith("\n") for piece in out)
    assert "".join(out) + lines.close() == "eins\nzwölf\n\n  drei\r\nlast\n"


def test_a_very_long_line_takes_linear_time() -> None:
    lines = LineAssembler()
    for _ in range(1000):
        assert lines.feed(b"x" * 65536) == ""
    assert len(lines.feed(b"\n")) == 65_536_001
