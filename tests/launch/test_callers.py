"""Whatever the caller of `execute` is like (threads, loops, closed streams, many files), its workers are not."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

import dataflow
from tests.engine.harness import failsafe
from tests.launch.arena import Arena

ANSWER = """
    async def main(worker):
        seen = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.exchange(lambda n: n).inspect(lambda _, n: seen.append(n)).probe()
        handle.send([worker.index, worker.index + 1])
        handle.close()
        while not probe.done:
            await worker.step()
        return sorted(seen)
"""
ANSWERS = "[[0, 2], [1, 1]]\n"


def answer(arena: Arena, before: str = "", call: str = "print(dataflow.execute(main, workers=2))") -> Any:
    """How a script ends that does something before it runs two workers."""
    lines = [*before.splitlines(), *call.splitlines()]
    return arena.script(ANSWER + "".join(f"    {line}\n" for line in ["", *lines])).end()


# ------------------------------------------------------------------------------------------------- threads and loops


def test_a_library_with_threads_used_before(arena: Arena) -> None:
    # As polars was: its workers inherited locks that threads held which they did not have, and hung.
    ended = answer(
        arena,
        "import polars\n"
        "frame = polars.DataFrame({'k': [1, 2, 1], 'v': [1, 2, 3]}).lazy().group_by('k').sum().collect()\n"
        "inner = main\n"
        "async def main(worker):\n"
        "    import polars\n"
        "    again = polars.DataFrame({'k': [1, 2, 1], 'v': [1, 2, 3]}).lazy().group_by('k').sum().collect()\n"
        "    assert again.sort('k').equals(frame.sort('k'))\n"
        "    return await inner(worker)\n",
    )
    assert (ended.status, ended.out) == (0, ANSWERS), ended


def test_threads_that_start_when_main_is_unpacked(arena: Arena) -> None:
    # Where a module of the program's starts threads workers cannot be forked from the process that has imported it.
    arena.write(
        "threaded.py",
        """
        import threading

        lock, waiting = threading.Lock(), threading.Event()

        def hold():
            with lock:
                waiting.wait(0.3)

        threading.Thread(target=hold, daemon=True).start()
        print("imported")

        async def main(worker):
            assert lock.acquire(timeout=5)
            return worker.index
        """,
    )
    ended = arena.script("import threaded\nprint(dataflow.execute(threaded.main, workers=2))\n").end()
    assert (ended.status, ended.err) == (0, "")
    # Here, where it was found to start threads, and in each worker.
    assert sorted(ended.out.splitlines()) == ["[0, 1]", *["imported"] * 4]


@pytest.mark.parametrize("library", ["numpy", "scipy.linalg", "numba", "pyarrow.compute", "pandas"])
def test_libraries_whose_threads_know_of_forks_are_imported_once(arena: Arena, library: str) -> None:
    arena.write("program.py", f"import {library}\nprint('imported', os.getpid())\nasync def main(worker):\n    pass\n")
    ended = arena.cli("run", "program:main", "--workers", "3").end()
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.count("imported") == 2, "here, and where workers are forked"


def test_a_thread_calls() -> None:
    results: list[Any] = []

    async def main(worker: dataflow.Worker) -> int:
        return worker.index

    with failsafe(30):
        thread = threading.Thread(target=lambda: results.append(dataflow.execute(main, workers=2)))
        thread.start()
        other = dataflow.execute(main, workers=2)
        thread.join()
    assert [*results, other] == [[0, 1], [0, 1]]


@pytest.mark.parametrize("handlers", ["", "asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)"])
def test_inside_an_asyncio_loop(arena: Arena, handlers: str) -> None:
    ended = answer(
        arena,
        f"import asyncio\nasync def outer():\n    await asyncio.sleep(0)\n    {handlers or 'pass'}\n"
        "    print(dataflow.execute(main, workers=2), dataflow.execute(main))\n"
        "    await asyncio.sleep(0)\n    return 'done'\n",
        "print(asyncio.run(outer()))",
    )
    assert (ended.status, ended.out, ended.err) == (0, ANSWERS[:-1] + " [[0, 1]]\ndone\n", ""), ended


def test_an_interrupt_inside_an_asyncio_loop(arena: Arena) -> None:
    # asyncio's own handler would wait for its loop, which waits for us.
    program = arena.script(
        """
        import asyncio

        async def main(worker):
            print("ready", worker.index)
            await trio.sleep_forever()

        async def outer():
            try:
                dataflow.execute(main, workers=2)
            finally:
                print("over", flush=True)

        asyncio.run(outer())
        """
    )
    program.wait_for("ready 0")
    program.wait_for("ready 1")
    program.interrupt()
    ended = program.end()
    assert ended.out.endswith("over\n") and ended.message == "KeyboardInterrupt", ended


def test_a_notebook(arena: Arena) -> None:
    # A kernel runs cells in a __main__ without a file, in a task of an asyncio loop, and has threads.
    cells = [
        "import dataclasses, dataflow, numpy as np",
        "@dataclasses.dataclass(order=True)\nclass Bid:\n    price: int\n\ndef double(bid): return Bid(bid.price * 2)",
        "def price(bid): return bid.price",
        textwrap.dedent(ANSWER).replace("stream.", "stream.map(Bid).map(double).").replace("lambda n: n", "price"),
        "print(dataflow.execute(main, workers=2))",
        "def double(bid): return Bid(bid.price * 3)",  # the cell is run again, with a change
        "print(dataflow.execute(main, workers=2))",
    ]
    kernel = (
        "import asyncio, sys, threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "def cell(text): exec(compile(text, '<cell>', 'exec'), vars(sys.modules['__main__']))\n"
        f"async def kernel():\n    for text in {cells!r}:\n        await asyncio.sleep(0)\n        cell(text)\n"
        "asyncio.run(kernel())\n"
    )
    ended = arena.start([sys.executable, "-c", kernel]).end()
    assert (ended.status, ended.err) == (0, ""), ended.err
    once = "[[Bid(price=0), Bid(price=2), Bid(price=2), Bid(price=4)], []]"
    again = "[[Bid(price=0), Bid(price=6)], [Bid(price=3), Bid(price=3)]]"
    assert ended.out == f"{once}\n{again}\n"


def test_a_caller_with_a_jvm(spark: Any) -> None:
    async def main(worker: dataflow.Worker) -> list[int]:
        seen: list[int] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.exchange(lambda n: n).inspect(lambda _, n: seen.append(n)).probe()
        handle.send([row * 10 + worker.index for row in rows])
        handle.close()
        while not probe.done:
            await worker.step()
        return sorted(seen)

    rows = [row.id for row in spark.range(3).collect()]
    with failsafe(60):
        assert dataflow.execute(main, workers=2) == [[0, 10, 20], [1, 11, 21]]


# ---------------------------------------------------------------------------------------------- signals, files, streams


def test_a_caller_that_ignores_the_ends_of_its_children(arena: Arena) -> None:
    ended = answer(arena, "signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
    assert (ended.status, ended.out, ended.err) == (0, ANSWERS, "")


def test_a_caller_that_reaps_whatever_ends(arena: Arena) -> None:
    ended = answer(
        arena,
        "def reap(*_):\n    try:\n        os.waitpid(-1, os.WNOHANG)\n    except ChildProcessError:\n        pass\n"
        "signal.signal(signal.SIGCHLD, reap)",
    )
    assert (ended.status, ended.out, ended.err) == (0, ANSWERS, "")


CLOSED = [set(chosen) for count in range(4) for chosen in itertools.combinations((0, 1, 2), count)]


@pytest.mark.parametrize("closed", CLOSED, ids=lambda closed: "".join(map(str, sorted(closed))) or "none")
def test_closed_standard_streams(arena: Arena, closed: set[int]) -> None:
    path = arena.write(
        "closed.py",
        ANSWER
        + """
    inner = main

    async def main(worker):
        print("to stdout", worker.index)
        print("to stderr", worker.index, file=sys.stderr)
        assert sys.stdin.read() == ""
        return await inner(worker)

    results = dataflow.execute(main, workers=2)
    with open("results.txt", "w") as file:
        file.write(f"{results}\\n")
""",
    )
    shell = " ".join([f'exec "{sys.executable}" "{path}"', *(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in closed)])
    ended = arena.start(["bash", "-c", shell]).end()
    assert ended.status == 0, ended
    assert (arena.folder / "results.txt").read_text() == ANSWERS
    assert sorted(ended.out.splitlines()) == ([] if 1 in closed else ["to stdout 0", "to stdout 1"])
    assert sorted(ended.err.splitlines()) == ([] if 2 in closed else ["to stderr 0", "to stderr 1"])


def test_many_open_files() -> None:
    async def main(worker: dataflow.Worker, fail: bool) -> int:
        print("x")
        if fail:
            raise ValueError("the program's own")
        return worker.index

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1300:
        pytest.skip("this user may not open enough files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1300), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with failsafe(30):
            assert dataflow.execute(main, False, workers=2) == [0, 1]
            with pytest.raises(ValueError, match="the program's own"):
                dataflow.execute(main, True, workers=2)
    finally:
        for fd in files:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_sixty_four_workers(arena: Arena) -> None:
    path = arena.write("many.py", ANSWER + "\n    print(sum(map(len, dataflow.execute(main, workers=64))))\n")
    shell = f'ulimit -n 1024; exec "{sys.executable}" "{path}"'
    ended = arena.start(["bash", "-c", shell]).end(within=120)
    assert (ended.status, ended.out, ended.err) == (0, "128\n", "")


def test_a_step_of_the_end_that_fails_leaves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataflow.launch.output import Output

    def broken(*_: Any) -> None:
        raise OSError("cannot be drained")

    async def main(worker: dataflow.Worker) -> None:
        raise ValueError("the program's own")

    monkeypatch.setattr(Output, "drain", broken)
    with failsafe(30), pytest.raises(ValueError, match="the program's own") as caught:
        dataflow.execute(main, workers=2)
    assert "while everybody was ended: OSError: cannot be drained" in caught.value.__notes__
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_the_options_of_the_interpreter(arena: Arena) -> None:
    path = arena.write(
        "options.py",
        """
        async def main(worker):
            return state()

        def state():
            import gc
            return [sys.flags.optimize, sys.flags.utf8_mode, sys.argv[1:], os.getcwd(), sys.warnoptions, gc.isenabled()]

        here = state()
        assert here[:3] == [1, 1, ["an argument"]]
        assert dataflow.execute(main, workers=2) == [here, here] or sys.exit("they differ")
        """,
    )
    command = [sys.executable, "-O", "-X", "utf8", "-W", "error::UserWarning", str(path), "an argument"]
    ended = arena.start(command).end()
    assert (ended.status, ended.err) == (0, "")


def test_nothing_of_the_caller_s_becomes_part_of_a_worker() -> None:
    # A descriptor that the caller left inheritable, a handler of its own, a child of its own.
    def handler(*_: Any) -> None:
        raise AssertionError

    async def main(worker: dataflow.Worker) -> tuple[bool, bool]:
        return str(number) in os.listdir("/proc/self/fd"), signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL

    number = 999
    with failsafe(30), subprocess.Popen(["sleep", "60"]) as child:
        read, write = os.pipe()
        os.dup2(read, number, inheritable=True)
        before = signal.signal(signal.SIGUSR1, handler)
        try:
            assert dataflow.execute(main, workers=2) == [(False, True)] * 2
        finally:
            signal.signal(signal.SIGUSR1, before)
            for fd in (read, write, number):
                os.close(fd)
            child.kill()
