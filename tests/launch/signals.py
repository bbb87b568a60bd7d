"""Rounds of signals: whatever is sent to workers and to their supervisor while a program runs, it ends well.

That is: soon, with the right result or with an error that names a worker to which something was sent, and leaving
no process and no file. A seed draws what is sent, to whom, and at which round of the program.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.launch.arena import Arena, Ended, Program

ROUNDS = 60
PATIENCE = 1.0  # seconds for which a worker may be stopped
WITHIN = 30.0  # seconds, on a machine that may be busy
SUPERVISOR = -1
PROGRAM = """
    async def main(worker, rounds):
        print("pid", worker.index, os.getpid(), flush=True)
        found = []

        def keep(input, output):  # what an operator keeps cannot move: whoever is told to end cannot just leave
            for _, batch in input:
                found.extend(batch)

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.exchange(lambda n: n).unary("keep", lambda _: keep).probe()
        for round in range(rounds):
            handle.send([round * worker.peers + worker.index + i for i in range(50)])
            handle.advance_to(round + 1)
            await probe.wait_passed(round)
            if worker.index == 0:
                print("round", round, flush=True)
                await trio.sleep(0.002)
        return len(found), sum(found)

    if __name__ == "__main__":
        workers, rounds, settings = int(sys.argv[1]), int(sys.argv[2]), Settings(grace=1.0, patience=float(sys.argv[3]))
        results = run_processes(main, (rounds,), range(workers), workers, settings)
        print("result", sum(n for n, _ in results.values()), sum(s for _, s in results.values()))
"""


@dataclass(frozen=True)
class Sent:
    """A signal: after which round of the program, to whom, which."""

    round: int
    to: int
    kind: signal.Signals


def draw(seed: int) -> tuple[int, list[Sent]]:
    """How many workers there are, and what is sent to them. Most rounds have something that does not kill."""
    chance = Random(seed)
    workers = chance.randint(2, 3)
    sent = []
    for _ in range(chance.randint(1, 5)):
        to = SUPERVISOR if chance.random() < 0.25 else chance.randrange(workers)
        kinds = [signal.SIGSTOP, signal.SIGSTOP, signal.SIGCONT, signal.SIGCONT, signal.SIGTERM, signal.SIGKILL]
        sent.append(Sent(chance.randrange(-1, ROUNDS), to, chance.choice(kinds)))
    sent.sort(key=lambda each: each.round)
    return workers, sent


def expected(workers: int) -> str:
    """What the program prints at its end, worked out by hand."""
    numbers = [r * workers + w + i for r in range(ROUNDS) for w in range(workers) for i in range(50)]
    return f"result {len(numbers)} {sum(numbers)}"


def run_case(seed: int) -> None:
    """One round, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder))
        try:
            run_round(arena, *draw(seed))
            arena.settled()
        finally:
            arena.clear()


def run_round(arena: Arena, workers: int, sent: list[Sent]) -> Ended:
    """Runs the program, sends it all that, and judges its end."""
    program = arena.script(PROGRAM, str(workers), str(ROUNDS), str(PATIENCE))
    delivered: list[Sent] = []
    for each in sent:
        stopped = _is_stopped(delivered)
        if each.round >= 0:
            _wait(program, lambda line=f"round {each.round}\n": line in program.out, stopped)
        pids = [program.pid]
        if each.to != SUPERVISOR:
            _wait(program, lambda worker=each.to: _pids(program, worker), stopped)
            pids = _pids(program, each.to)
        if pids and _send(arena, pids[0], each.kind):
            delivered.append(each)
    _send(arena, program.pid, signal.SIGCONT)  # or it is stopped for ever, and rightly so
    program.mark_time()
    ended = program.end(WITHIN)
    _judge(ended, workers, delivered)
    return ended


def _judge(ended: Ended, workers: int, delivered: list[Sent]) -> None:
    said = f"{delivered}\nstatus {ended.status}\n{ended.out[-500:]}\n{ended.err}"
    assert ended.err.count("Traceback (most recent call last)") <= 1, said
    assert ended.out.count("result") <= 1, said
    harmed = {each.to for each in delivered if each.kind != signal.SIGCONT}
    ending = {each.to for each in delivered if each.kind in (signal.SIGTERM, signal.SIGKILL)}
    if ended.status == 0:
        assert ended.out.splitlines()[-1] == expected(workers), said
        return
    if SUPERVISOR in ending:
        return  # nobody is left who could say anything
    if ended.status in (-signal.SIGTERM, 128 + signal.SIGTERM):
        assert any(each.kind == signal.SIGTERM for each in delivered), said
        return  # the program ended as one that was told to end does
    named = {int(number) for number in re.findall(r"worker (\d+)", ended.message)}
    assert named and named <= harmed, f"the error names {named or 'nobody'}, and signals went to {harmed}\n{said}"


def _wait(program: Program, condition: Callable[[], object], stopped: bool) -> None:
    """Waits until the program is so far, or gets no further: it has ended, or (if `stopped`) somebody is stopped."""
    since, last = time.monotonic(), ""
    limit = PATIENCE / 3 if stopped else WITHIN
    while not condition() and program.process.poll() is None:
        if program.out != last:
            since, last = time.monotonic(), program.out
        if time.monotonic() - since > limit:
            assert stopped, f"nothing has happened for {limit:g} s:\n{last[-500:]}\n{program.err}"
            return
        time.sleep(0.001)


def _pids(program: Program, worker: int) -> list[int]:
    """The process of a worker, once it has said so."""
    return [int(pid) for pid in re.findall(rf"^pid {worker} (\d+)$", program.out, re.MULTILINE)]


def _is_stopped(delivered: list[Sent]) -> bool:
    """Whether somebody is, as far as signals say."""
    state = {each.to: each.kind for each in delivered if each.kind in (signal.SIGSTOP, signal.SIGCONT)}
    return signal.SIGSTOP in state.values()


def _send(arena: Arena, pid: int, kind: signal.Signals) -> bool:
    """Sends a signal, unless whoever should get it has ended: its number may be another's by now."""
    try:
        if pid not in arena.processes():
            return False
        os.kill(pid, kind)
    except ProcessLookupError:
        return False
    return True
