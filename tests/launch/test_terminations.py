"""SIGTERM, to a worker, to the supervisor or to everybody: finally clauses run, and the end is soon and clean."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.launch.arena import SOON, Arena

CAREFUL = """
    def forget(input, output):
        for _ in input:
            pass

    async def main(worker):
        try:
            with worker.dataflow() as scope:  # one that cannot be scaled: who is told to end cannot leave the others
                scope.source(iter(int, 1), batch=10, ahead=4).exchange(lambda n: n).unary("x", lambda _: forget).probe()
            print("ready", worker.index)
            await trio.sleep_forever()
        finally:
            print("finally", worker.index)
"""


@pytest.mark.parametrize("target", ["supervisor", "worker", "everybody"])
@pytest.mark.parametrize("way", ["script", "command"])
def test_a_termination_runs_finally_clauses(arena: Arena, target: str, way: str) -> None:
    if way == "script":
        program = arena.script(CAREFUL + "\n    dataflow.execute(main, workers=3)\n")
    else:
        arena.write("program.py", CAREFUL)
        program = arena.cli("run", "program:main", "--workers", "3")
    for index in range(3):
        program.wait_for(f"ready {index}")
    program.mark_time()
    if target == "everybody":
        os.killpg(program.pid, signal.SIGTERM)
    else:
        os.kill(program.pid if target == "supervisor" else program.workers(3)[1], signal.SIGTERM)
    ended = program.end()
    assert ended.status == 143 and ended.seconds < SOON
    assert sorted(re.findall(r"finally \d", ended.out)) == ["finally 0", "finally 1", "finally 2"]
    who = {"supervisor": "this process", "worker": "worker 1", "everybody": r"(this process|worker \d)"}[target]
    assert re.fullmatch(rf"dataflow: {who} received SIGTERM\n" if way == "command" else "", ended.err), ended.err


@pytest.mark.parametrize("what", ["waits", "is busy"])
def test_a_termination_of_one_worker_in_this_process(arena: Arena, what: str) -> None:
    rest = "await trio.sleep_forever()" if what == "waits" else "while True: pass"
    program = arena.script(
        f"""
        async def main(worker):
            try:
                print("ready", flush=True)
                {rest}
            finally:
                print("finally", flush=True)

        try:
            dataflow.execute(main)
        except dataflow.errors.Terminated as error:
            print(repr(error.code), error)
            print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
        """
    )
    program.wait_for("ready")
    os.kill(program.pid, signal.SIGTERM)
    ended = program.end()
    assert ended.out == "ready\nfinally\n143 this process received SIGTERM\nTrue\n", ended


def test_a_busy_worker_is_terminated_as_well(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            print("ready", worker.index)
            while True:
                pass

        run_processes(main, (), range(2), 2, Settings(grace=0.2))
        """
    )
    workers = program.workers(2)
    program.wait_for("ready 0")
    program.wait_for("ready 1")
    program.mark_time()
    os.kill(workers[0], signal.SIGTERM)
    ended = program.end()
    assert (ended.status, ended.err) == (143, "") and ended.seconds < SOON


def test_a_handler_of_the_program_s_own_is_left_alone(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            print("ready", worker.index)
            await trio.sleep(0.5)
            return worker.index

        signal.signal(signal.SIGTERM, lambda *_: print("mine", flush=True))
        print(dataflow.execute(main, workers=2))
        """
    )
    program.wait_for("ready 0")
    os.kill(program.pid, signal.SIGTERM)
    ended = program.end()
    assert ended.status == 0 and "mine\n" in ended.out and ended.out.endswith("[0, 1]\n")
