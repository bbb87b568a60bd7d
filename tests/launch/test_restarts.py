"""Workers that die or raise, with recovery: they are replaced, all go back, and nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from random import Random

import pytest

from tests.launch.arena import SOON, Arena, Program, wait_until

# Each life prints a line for each worker. `fault` is done once for each file that is not there yet.
PREAMBLE = """
    import pathlib
    HERE = pathlib.Path(__file__).parent

    def once(name):
        try:
            (HERE / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def feed(worker, fault=lambda worker, time: None, epochs=40, prepare=lambda stream: stream):
        async def run():
            seen = []
            with worker.dataflow() as scope:
                handle, stream = scope.input()
                stream = prepare(stream).exchange(lambda n: n)
                stream.inspect(lambda time, n: seen.append(n))
                probe = stream.probe()
            handle.advance_to(worker.resume_at)
            print("life", worker.index, os.getpid())
            for time in range(worker.resume_at, epochs):
                handle.send(range(time, time + 4))
                handle.advance_to(time + 1)
                await probe.wait_passed(time)
                fault(worker, time)
            return worker.resume_at, sum(seen)
        return run()
"""


def lives(program: str) -> dict[int, list[int]]:
    """By worker, the processes that it had, life by life."""
    found: dict[int, list[int]] = {}
    for worker, pid in re.findall(r"life (\d+) (\d+)", program):
        found.setdefault(int(worker), []).append(int(pid))
    return found


def require_right(out: str) -> None:
    """What three workers returned together is the sum of all records since the snapshot that they went on from."""
    found = [(int(start), int(total)) for start, total in re.findall(r"\((\d+), (\d+)\)", out.splitlines()[-1])]
    assert len(found) == 3
    start = found[0][0]
    right = 3 * sum(n for time in range(start, 40) for n in range(time, time + 4))
    assert ({start for start, _ in found}, sum(total for _, total in found)) == ({start}, right)


@pytest.mark.parametrize(
    ("victim", "how"),
    [(0, "os.kill(os.getpid(), signal.SIGKILL)"), (1, "raise ValueError('oh no')"), (2, "os._exit(0)")],
)
def test_a_worker_that_ends_is_replaced_and_the_others_stay(arena: Arena, victim: int, how: str) -> None:
    program = arena.script(
        PREAMBLE
        + f"""
    def fault(worker, time):
        if worker.index == {victim} and time == 20 and once("done"):
            {how}

    async def main(worker):
        return await feed(worker, fault)

    if __name__ == "__main__":
        print(dataflow.execute(main, workers=3, recovery=dataflow.Recovery("state", every=1000.0)))
"""
    )
    ended = program.end()
    assert ended.status == 0, ended.err
    require_right(ended.out)
    (line,) = ended.err.splitlines()
    assert re.fullmatch(rf"dataflow: .*worker {victim}.*: restart 1 of 5, from the beginning", line), line
    pids = lives(ended.out)
    for worker, (before, after) in pids.items():
        assert (before == after) == (worker != victim), pids


def test_many_restarts_leave_nothing_open_and_no_memory_is_shared_between_lives(arena: Arena) -> None:
    # Large batches lie in shared memory. One is kept from each life, and must not change in the next.
    program = arena.script(
        PREAMBLE
        + """
    import gc, weakref
    import numpy as np
    from dataflow.run.worker import pump_of
    KEPT, PUMPS, FILES = [], weakref.WeakSet(), []

    async def main(worker):
        # A batch keeps the memory of its life, which from the second life on is an open file.
        FILES.append(len(os.listdir("/proc/self/fd")) - max(0, len(KEPT) - 1))
        assert not PUMPS, "the worker of an earlier life is still there"
        PUMPS.add(pump_of(worker))
        for batch, value in KEPT:
            assert (batch == value).all(), "a batch of an earlier life has changed"
        life = len(KEPT)
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream = stream.broadcast()
            stream.inspect_batch(lambda time, batch: keep(life, batch["n"]))
            probe = stream.probe()
        handle.advance_to(worker.resume_at)
        for time in range(worker.resume_at, 20):
            handle.send({"n": np.full(50_000, 100 * os.getpid() + time)})
            handle.advance_to(time + 1)
            await probe.wait_passed(time)
            if time == 10 and worker.index == 1 and once(f"done{life_of_the_run()}"):
                os.kill(os.getpid(), signal.SIGKILL)
        return len(set(FILES[2:])), len(KEPT)

    def keep(life, batch):
        if len(KEPT) == life and batch[0] // 100 != os.getpid():  # from the other, so it lies in shared memory
            KEPT.append((batch, int(batch[0])))

    def life_of_the_run():
        return len(list(HERE.glob("done*"))) if len(list(HERE.glob("done*"))) < 6 else 0

    if __name__ == "__main__":
        before = len(os.listdir("/proc/self/fd"))
        print(dataflow.execute(main, workers=2, recovery=dataflow.Recovery("state", every=1000.0, restarts=9)))
        assert len(os.listdir("/proc/self/fd")) == before
"""
    )
    ended = program.end()
    assert ended.status == 0, ended.err
    assert ended.out == "[(1, 7), (0, 1)]\n", ended.out + ended.err
    assert len(ended.err.splitlines()) == 6


# ---------------------------------------------------------------------------------------------------- when it is enough


def test_a_poison_record_is_named(arena: Arena) -> None:
    program = arena.script(
        PREAMBLE
        + """
    def check(n):
        if n == 22:
            raise ValueError(f"on {os.getpid()}")
        return n

    async def main(worker):
        return await feed(worker, prepare=lambda stream: stream.map(check))

    if __name__ == "__main__":
        dataflow.execute(main, workers=2, recovery=dataflow.Recovery("state", restarts=2))
"""
    )
    ended = program.end()
    assert ended.status == 1
    assert re.findall(r"restart (\d) of 2", ended.err) == ["1", "2"]
    for line in ended.err.splitlines():
        if ": restart " in line:
            assert "at the record 22; at the time 19; in operator map" in line
    assert "the same record failed 3 times within 600 seconds: 2 restarts were allowed" in ended.message


@pytest.mark.parametrize(
    "mistake",
    [
        "raise NameError('a typo')",
        "stream = feed(worker, prepare=lambda s: s.map(int) if worker.index else s); await stream",
    ],
)
def test_what_cannot_be_built_is_not_tried_again(arena: Arena, mistake: str) -> None:
    program = arena.script(
        PREAMBLE
        + f"""
    async def main(worker):
        {mistake}

    if __name__ == "__main__":
        dataflow.execute(main, workers=2, recovery="state")
"""
    )
    ended = program.end()
    assert ended.status == 1
    assert ": restart " not in ended.err


def test_memory_is_no_place_for_several_processes() -> None:
    import dataflow

    async def main(worker: dataflow.Worker) -> None: ...

    with pytest.raises(ValueError, match="only this one can see what is kept in its memory"):
        dataflow.execute(main, workers=2, recovery="memory://x")


# --------------------------------------------------------------------------------------------------------- from outside

ENDLESS = (
    PREAMBLE
    + """
    async def main(worker):
        result = await feed(worker, epochs=40)
        if not (HERE / "end").exists():
            await trio.sleep_forever()
        return result

    if __name__ == "__main__":
        print(run_processes(main, (), range(3), 3, Settings(patience=1.0), recovery=dataflow.Recovery(
            "state", every=1000.0, restarts=20)))
"""
)


def wait_for_life(program: Program, number: int) -> dict[int, list[int]]:
    """Waits until all three workers are in that life."""
    wait_until(
        lambda: (
            [len(pids) for pids in lives(program.out).values()] == [number] * 3 or program.process.poll() is not None
        ),
        lambda: f"life {number}:\n{program.out}\n{program.err}",
    )
    return lives(program.out)


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_random_moments(arena: Arena, seed: int) -> None:
    # The last life ends by itself, once it may.
    chance = Random(seed)
    program = arena.script(ENDLESS)
    for _ in range(6):
        program.workers(3)
        victims = chance.sample(program.children(), chance.choice((1, 1, 2, 3)))
        for pid in victims:
            os.kill(pid, chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV)))
        wait_until(lambda v=victims: not set(v) & set(program.children()), "the end of the victims")  # type: ignore[misc]
    (arena.folder / "end").touch()
    program.workers(3)
    os.kill(program.children()[0], signal.SIGKILL)
    ended = program.end()
    assert ended.status == 0, ended.err
    require_right(ended.out)
    assert re.findall(r"restart (\d+) of 20, from the beginning", ended.err)


def test_two_that_die_at_once_are_one_failure_or_two_but_all_are_replaced(arena: Arena) -> None:
    program = arena.script(ENDLESS)
    first = wait_for_life(program, 1)
    (arena.folder / "end").touch()
    for worker in (0, 2):
        os.kill(first[worker][0], signal.SIGKILL)
    ended = program.end()
    assert ended.status == 0, ended.err
    require_right(ended.out)
    assert lives(ended.out)[1][0] == lives(ended.out)[1][-1]


def test_a_stopped_worker_is_given_up_and_replaced(arena: Arena) -> None:
    program = arena.script(ENDLESS)
    pids = wait_for_life(program, 1)
    (arena.folder / "end").touch()
    os.kill(pids[1][0], signal.SIGSTOP)
    ended = program.end()
    assert ended.status == 0, ended.err
    assert "worker 1 is stopped and has not answered for 1 seconds: restart 1 of 20" in ended.err
    require_right(ended.out)


def test_the_process_that_starts_workers_is_killed(arena: Arena) -> None:
    program = arena.script(ENDLESS)
    before = wait_for_life(program, 1)
    (arena.folder / "end").touch()
    os.kill(program.zygotes()[0], signal.SIGKILL)
    ended = program.end()
    assert ended.status == 0, ended.err
    assert "the process that starts workers was killed by signal 9" in ended.err
    assert "restart 1 of 20" in ended.err
    require_right(ended.out)
    assert all(first != second for first, second in lives(ended.out).values()), before


def test_the_supervisor_is_killed_while_all_go_back(arena: Arena) -> None:
    program = arena.script(ENDLESS)
    pids = wait_for_life(program, 1)
    os.kill(pids[1][0], signal.SIGKILL)
    os.kill(program.pid, signal.SIGKILL)
    assert program.end().status == -signal.SIGKILL  # and the arena sees that nothing is left


def test_ctrl_c_ends_the_run(arena: Arena) -> None:
    program = arena.script(ENDLESS)
    pids = wait_for_life(program, 1)
    os.kill(pids[0][0], signal.SIGKILL)
    wait_for_life(program, 2)
    program.interrupt()
    ended = program.end()
    assert ended.status in (-signal.SIGINT, 130)
    assert ended.seconds < SOON
    assert ended.err.count(": restart ") == 1


def test_a_second_sigterm_to_a_worker_ends_the_run(arena: Arena) -> None:
    program = arena.script(ENDLESS)
    pids = wait_for_life(program, 1)

    def tell_again() -> bool:
        """The first means that it leaves, which it cannot while main sleeps. Signals that come together are one."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[2][0], signal.SIGTERM)
        return program.process.poll() is not None

    wait_until(tell_again, "the end of a run whose worker was told twice")
    ended = program.end()
    assert ended.status == 143
    assert ": restart " not in ended.err
