"""Every way in which a computation can end: soon, with one message that names the worker, leaving nothing behind."""

from __future__ import annotations

import os
import re
import signal
from random import Random

import pytest

from tests.launch.arena import SOON, Arena, Ended, wait_until

BUSY = """
    async def main(worker):
        with worker.dataflow() as scope:
            stream = scope.source(iter(int, 1), batch=10, ahead=4)
            stream.map(lambda n: n + 1).exchange(lambda n: n).broadcast().probe()
        print("ready", worker.index)
        await trio.sleep_forever()
"""
RUN = BUSY + """
    if __name__ == "__main__":
        dataflow.execute(main, workers=3)
"""


def require_one_message(ended: Ended, pattern: str) -> None:
    """A failure, soon, whose message says it once and names nobody else."""
    assert ended.status not in (0, None)
    assert ended.seconds < SOON
    assert re.search(pattern, ended.message), ended.err
    assert len(re.findall(pattern, ended.err)) == 1, ended.err
    assert ended.err.count("Traceback (most recent call last)") <= 1, ended.err


def test_a_normal_end(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker, *args):
            with worker.dataflow() as scope:
                handle, stream = scope.input()
                stream.exchange(lambda n: n).probe()
            handle.send(range(100))
            return worker.index, args

        print(dataflow.execute(main, "x", workers=4))
        """
    )
    ended = program.end()
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == "[(0, ('x',)), (1, ('x',)), (2, ('x',)), (3, ('x',))]\n"


# ------------------------------------------------------------------------------------------------------ killed workers


@pytest.mark.parametrize("seed", range(3))
def test_a_worker_is_killed_at_a_random_moment(arena: Arena, seed: int) -> None:
    chance = Random(seed)
    program = arena.script(RUN)
    workers = program.workers(3)
    victim = chance.randrange(3)
    if seed % 3:  # otherwise while it is still building
        program.wait_for("ready 0")
        sent = len(program.out)
        wait_until(lambda: len(program.out) >= sent, "the moment")
    program.mark_time()
    os.kill(workers[victim], signal.SIGKILL)
    require_one_message(program.end(), rf"worker {victim} was killed by signal 9 \(SIGKILL\)")


def test_two_workers_are_killed_at_once(arena: Arena) -> None:
    program = arena.script(RUN)
    workers = program.workers(3)
    program.wait_for("ready 1")
    program.mark_time()
    for pid in workers[1:]:
        os.kill(pid, signal.SIGKILL)
    require_one_message(program.end(), r"worker [12] was killed by signal 9")


def test_other_signals_are_named(arena: Arena) -> None:
    program = arena.script(RUN)
    workers = program.workers(3)
    program.wait_for("ready 0")
    program.mark_time()
    os.kill(workers[0], signal.SIGSEGV)
    require_one_message(program.end(), r"worker 0 was killed by signal \d+ \(SIGSEGV\)")


def test_a_worker_is_killed_while_it_returns_its_result(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            try:
                return "x"
            finally:
                if worker.index == 1:
                    os.kill(os.getpid(), signal.SIGKILL)

        dataflow.execute(main, workers=3)
        """
    )
    require_one_message(program.end(), "worker 1 was killed by signal 9")


def test_a_killed_worker_whose_child_lives_on(arena: Arena) -> None:
    # The child has a copy of every connection: nobody sees an end of any of them.
    program = arena.script(
        """
        async def main(worker):
            if worker.index == 1:
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
                os.kill(os.getpid(), signal.SIGKILL)
            await trio.sleep_forever()

        dataflow.execute(main, workers=2)
        """
    )
    require_one_message(program.end(), "worker 1 was killed by signal 9")
    arena.clear()  # the child is the program's own affair


# ----------------------------------------------------------------------------------------------------- stopped workers


def test_a_stopped_worker_is_given_up(arena: Arena) -> None:
    program = arena.script(
        BUSY
        + """
    run_processes(main, (), range(3), 3, Settings(patience=0.5, grace=0.5))
"""
    )
    workers = program.workers(3)
    program.wait_for("ready 2")
    program.mark_time()
    os.kill(workers[2], signal.SIGSTOP)
    require_one_message(program.end(), "worker 2 is stopped and has not answered for 0.5 seconds")


def test_a_worker_that_is_busy_or_stopped_for_a_moment_is_not(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            print("ready", worker.index)
            if worker.index == 1:
                end = time.monotonic() + 1.6
                while time.monotonic() < end:
                    pass
            return worker.index

        print(sorted(run_processes(main, (), range(2), 2, Settings(patience=0.6)).items()))
        """
    )
    workers = program.workers(2)
    program.wait_for("ready 1")
    os.kill(workers[1], signal.SIGSTOP)
    os.kill(workers[1], signal.SIGCONT)
    ended = program.end()
    assert (ended.status, ended.err) == (0, "") and ended.out.endswith("[(0, 0), (1, 1)]\n")


# ---------------------------------------------------------------------------------------------------------- interrupts


def test_an_interrupt_of_a_script(arena: Arena) -> None:
    program = arena.script(RUN)
    program.workers(3)
    program.wait_for("ready 0")
    program.interrupt()
    ended = program.end()
    assert ended.status in (-signal.SIGINT, 1, 130) and ended.seconds < SOON
    assert ended.message == "KeyboardInterrupt"
    assert ended.err.count("Traceback") == 1


def test_an_interrupt_of_the_command_line(arena: Arena) -> None:
    arena.write("program.py", BUSY)
    program = arena.cli("run", "program:main", "--workers", "3")
    program.workers(3)
    program.wait_for("ready 0")
    program.interrupt()
    ended = program.end()
    assert (ended.status, ended.err) == (130, "dataflow: interrupted\n") and ended.seconds < SOON


def test_impatient_interrupts(arena: Arena) -> None:
    # Workers that take their time: the second and third Ctrl-C come while they are being ended.
    arena.write(
        "program.py",
        """
        async def main(worker):
            print("ready", worker.index)
            while True:
                try:
                    await trio.sleep_forever()
                except trio.Cancelled:
                    time.sleep(0.7)
                    raise
        """,
    )
    program = arena.cli("run", "program:main", "--workers", "2")
    program.wait_for("ready 0")
    program.wait_for("ready 1")
    program.interrupt()
    for _ in range(20):
        try:
            os.killpg(program.pid, signal.SIGINT)
        except ProcessLookupError:
            break
        wait_until(lambda: True, "")
    ended = program.end()
    assert ended.status in (130, -signal.SIGINT) and ended.seconds < SOON


def test_an_interrupt_while_workers_start(arena: Arena) -> None:
    # It reaches all that are there: the parent, a zygote that does not expect it yet, perhaps some workers.
    program = arena.script(
        """
        async def main(worker):
            await trio.sleep_forever()

        start = subprocess.Popen.__init__

        def start_and_interrupt(*args, **options):
            start(*args, **options)
            os.killpg(0, signal.SIGINT)

        subprocess.Popen.__init__ = start_and_interrupt
        try:
            dataflow.execute(main, workers=3)
        except KeyboardInterrupt:
            print("interrupted in", "parent" if os.getppid() == int(sys.argv[1]) else "child")
            try:
                print("left", os.waitpid(-1, os.WNOHANG))
            except ChildProcessError:
                print("nobody is left")
        """,
        str(os.getpid()),
    )
    ended = program.end()
    assert ended.out == "interrupted in parent\nnobody is left\n", ended
    assert ended.err == ""


def test_an_interrupt_that_the_program_takes_for_its_own(arena: Arena) -> None:
    # A process that workers are to be forked from has not made itself deaf to it yet.
    program = arena.script(
        """
        async def main(worker):
            return worker.index

        start = subprocess.Popen.__init__

        def start_and_interrupt(*args, **options):
            start(*args, **options)
            os.killpg(0, signal.SIGINT)

        subprocess.Popen.__init__ = start_and_interrupt
        signal.signal(signal.SIGINT, lambda *_: print("mine"))
        print(dataflow.execute(main, workers=2))
        """
    )
    ended = program.end()
    assert (ended.out, ended.err) == ("mine\n[0, 1]\n", "")


def test_a_fork_that_fails(arena: Arena) -> None:
    # Modules that main needs are imported where workers are forked: this one has one fork fail there.
    arena.write(
        "forks.py",
        """
        fork, forks = os.fork, []

        def fork_twice():
            forks.append(1)
            if len(forks) == 4:  # the first sees whether there are threads
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return fork()

        if sys.argv[0] == os.environ["SCRIPT"]:
            os.fork = fork_twice

        async def main(worker):
            await trio.sleep_forever()
        """,
    )
    program = arena.script(
        """
        os.environ["SCRIPT"] = "elsewhere"
        import forks
        os.environ["SCRIPT"] = sys.argv[0]
        files = os.listdir("/proc/self/fd")
        try:
            dataflow.execute(forks.main, workers=4)
        except dataflow.DataflowError as error:
            print(error)
        print(os.listdir("/proc/self/fd") == files)
        try:
            print("left", os.waitpid(-1, os.WNOHANG))
        except ChildProcessError:
            print("nobody is left")
        """
    )
    ended = program.end()
    said, *rest = ended.out.splitlines()
    assert said.startswith("the system starts no more processes (Resource temporarily unavailable): "), ended
    assert rest == ["True", "nobody is left"], ended


@pytest.mark.parametrize("victim", ["killed", "stopped"])
def test_the_process_that_workers_are_forked_from(arena: Arena, victim: str) -> None:
    program = arena.script(
        BUSY
        + """
    run_processes(main, (), range(3), 3, Settings(patience=0.5, grace=0.5))
"""
    )
    program.workers(3)
    program.wait_for("ready 0")
    (zygote,) = program.zygotes()
    program.mark_time()
    if victim == "killed":
        os.kill(zygote, signal.SIGKILL)
        require_one_message(program.end(), "the process that starts workers was killed by signal 9")
    else:
        os.kill(zygote, signal.SIGSTOP)
        require_one_message(program.end(), "the process that starts workers is stopped and has not answered for 0.5 s")


# ---------------------------------------------------------------------------------------------------------- supervisor


def test_workers_do_not_outlive_their_supervisor(arena: Arena) -> None:
    program = arena.script(RUN)
    program.workers(3)
    program.wait_for("ready 0")
    os.kill(program.pid, signal.SIGKILL)
    assert program.end().status == -signal.SIGKILL
    arena.settled()


@pytest.mark.parametrize("zygote", ["lives", "is stopped"])
def test_busy_workers_do_not_outlive_it_either(arena: Arena, zygote: str) -> None:
    program = arena.script(
        """
        async def main(worker):
            print("ready", worker.index)
            while True:
                pass

        dataflow.execute(main, workers=2)
        """
    )
    program.workers(2)
    program.wait_for("ready 0")
    program.wait_for("ready 1")
    if zygote == "is stopped":  # it can do nothing: the kernel has to
        os.kill(*program.zygotes(), signal.SIGSTOP)
    os.kill(program.pid, signal.SIGKILL)
    program.end()
    arena.settled()


# ----------------------------------------------------------------------------------------------------- stubborn workers


def test_workers_that_will_not_stop_are_killed(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            if worker.index == 0:
                await trio.sleep(0.2)
                raise ValueError("the cause")
            while True:
                pass

        dataflow.execute(main, workers=3)
        """
    )
    ended = program.end()
    assert ended.status == 1 and ended.seconds < SOON + 2
    assert "ValueError: the cause" in ended.err and "worker 0" in ended.err


def test_a_worker_that_never_stops_printing_does_not_delay_the_end(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            if worker.index == 0:
                await trio.sleep(0.2)
                raise ValueError("the cause")
            line = b"x" * 65535 + b"\\n"
            while True:
                os.write(1, line)

        dataflow.execute(main, workers=3)
        """,
        stdout=os.open(os.devnull, os.O_WRONLY),
    )
    ended = program.end()
    assert ended.status == 1 and ended.seconds < SOON + 2
    assert "ValueError: the cause" in ended.err


def test_one_message_on_the_command_line(arena: Arena) -> None:
    arena.write(
        "program.py",
        """
        async def main(worker):
            with worker.dataflow() as scope:
                scope.source(iter(int, 1)).exchange(lambda n: n).inspect(check, name="division")
            await trio.sleep_forever()

        def check(time, n):
            1 / n
        """,
    )
    ended = arena.cli("run", "program:main", "--workers", "3").end()
    assert ended.status == 1
    expected = "dataflow: ZeroDivisionError: division by zero; at the record 0; at the time 0; in operator division"
    assert ended.message.startswith(expected) and "on worker 0 of 3" in ended.message
    assert ended.err.count("Traceback") == 1 and ended.err.count("ZeroDivisionError") == 2
