"""Commands against a real run, in processes of its own: each shows what the run has, and what cannot be is refused."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataflow.__main__ import main as dataflow_command
from tests.launch.arena import Arena, Program, wait_until

APP = """
import megaphone

def count(key, one, total):
    total = (total or 0) + one
    return total, [(key, total)]

async def main(worker, flag):
    with worker.dataflow("counts") as scope:
        handle, stream = scope.input(name="numbers")
        pairs = stream.map(lambda n: (n, 1))
        totals = megaphone.state_machine(scope.control(), pairs, fold=count, bins=16, name="totals")
        probe = totals.probe()
    if worker.index == 0:
        handle.send(list(range(50)) * 4 + ["fox"])
    n = 0
    while not os.path.exists(flag):
        n += 1
        handle.advance_to(n)
        await probe.wait_passed(n - 1)
        if n == 3:
            print("begun", flush=True)
        await trio.sleep(0.005)
"""

Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(arena: Arena) -> Iterator[Program]:
    """Two workers that hold 51 keys, and go on until they are stopped."""
    arena.write("counting.py", APP)
    program = arena.cli("run", "counting:main", "--workers", "2", "flag")
    program.wait_for("begun")
    yield program
    (arena.folder / "flag").touch()
    program.end()


@pytest.fixture
def told(arena: Arena, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command in this process: its status, and what it printed."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(arena.runtime))
    monkeypatch.setenv("TMPDIR", str(arena.temporary))  # the other place where runs are looked for
    monkeypatch.setattr("tempfile.tempdir", None)

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = dataflow_command([*arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return command


def test_a_run_is_looked_at_and_steered_from_outside(run: Program, told: Told, arena: Arena) -> None:
    assert "counting" in told("list")[1]
    _looks(told, arena.folder)
    _keys(told)
    _migrates(told)
    _refuses(told)
    status, out, err = told("stop", "counting")
    assert (status, out, err) == (0, "counting has stopped\n", "")
    ended = run.end()
    assert ended.status == 143
    assert ended.message == "dataflow: 'counting' was asked to stop (python -m dataflow stop)"
    assert told("status", "counting")[0] == 1


def _looks(told: Told, folder: Path) -> None:
    status = json.loads(told("status", "counting", "--json")[1])
    assert [worker["worker"] for worker in status["workers"]] == [0, 1]
    operators = [each for worker in status["workers"] for each in worker["dataflows"][0]["operators"]]
    for name in ("map", "totals F", "totals S"):
        assert sum(each["edges"][0]["records"] for each in operators if each["name"] == name) == 201
    state = [worker["dataflows"][0]["state"][0] for worker in status["workers"]]
    assert [each["placed"] for each in state] == [[[0, 8], [1, 8]]] * 2
    out = told("status", "counting")[1]
    assert re.search(r"1 +map +201 +201", out)
    assert "counts: complete before" in out and "totals: " in out
    out = told("explain", "counting")[1]
    assert "worker 0 of 2:" in out and "worker 1 of 2:" in out
    assert re.search(r"numbers \(#0\) holds \d capabilit.* for \d+\.\d s", out)
    out = told("top", "counting", "--every", "0.1", "--frames", "2")[1]
    assert out.count("counting: 2 workers") == 2 and "totals S (#4)" in out and "worker 0: 8, worker 1: 8" in out
    out = told("profile", "counting", "--seconds", "0.2")[1]
    assert out.count("progress and messages") == 2 and "counts: totals F (#3)" in out and "idle" in out
    path = folder / "out.json"
    assert told("trace", "counting", "--seconds", "0.3", "--to", str(path))[0] == 0
    events = json.loads(path.read_text())["traceEvents"]
    steps = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in steps} == {0, 1}
    assert "totals F" in {event["name"] for event in steps}
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in steps)


def _keys(told: Told) -> None:
    for key in range(0, 50, 7):
        assert told("get", "counting", "totals", str(key)) == (0, "4\n", "")
    assert told("get", "counting", "counts/totals", "fox") == (0, "1\n", "")
    found = json.loads(told("get", "counting", "totals", "7", "--json")[1])
    assert found["value"] == 4 and found["worker"] in (0, 1)
    assert told("get", "counting", "totals", "70")[::2] == (1, "dataflow: totals has no state for the key 70\n")
    assert told("get", "counting", "[1]", "70")[2] == (
        "dataflow: there is no stateful operator '[1]'; there are: totals\n"
    )
    assert "cannot be a key of totals" in told("get", "counting", "totals", "[1]")[2]


def _migrates(told: Told) -> None:
    move = ("migrate", "counting", "--operator", "totals")
    assert told(*move, "--to", "worker:1", "--strategy", "batched:3", "--dry-run")[1] == (
        "totals: 8 bins would move, in 3 steps (batched:3)\n"
    )
    status, out, err = told(*move, "--to", "worker:1", "--strategy", "batched:3")
    assert re.fullmatch(r"totals: 8 of 8 bins moved, (\d) of \1 steps\n", out)  # bins of unknown size go alone
    assert (status, err) == (0, "")
    assert json.loads(told("get", "counting", "totals", "7", "--json")[1])["worker"] == 1
    assert told(*move, "--to", "0-3=0", "--strategy", "fluid", "--no-wait")[0] == 0
    wait_until(lambda: "worker 0: 4; worker 1: 12" in told("status", "counting")[1], "four bins at worker 0")
    assert told("get", "counting", "totals", "fox") == (0, "1\n", "")


def _refuses(told: Told) -> None:
    move = ("migrate", "counting", "--operator", "totals")
    assert "there is no worker '7' that can have bins: there are 0, 1" in told(*move, "--to", "worker:7")[2]
    assert "is no strategy: say all-at-once" in told(*move, "--to", "even", "--strategy", "soon")[2]
    assert told(*move)[2] == "dataflow: say --to WHERE, or --cancel\n"
    assert told("migrate", "counting", "--operator", "map", "--to", "even")[2] == (
        "dataflow: there is no stateful operator 'map'; there are: totals\n"
    )
    assert "there is no run called 'nobody'" in told("status", "nobody")[2]
    assert "at most 60" in told("trace", "counting", "--seconds", "1000")[2]


def test_runs_of_one_program_get_numbers_and_a_script_has_its_own_name(arena: Arena, told: Told) -> None:
    code = """
    async def main(worker):
        print("begun", flush=True)
        while not os.path.exists(sys.argv[1]):
            await trio.sleep(0.01)

    if __name__ == "__main__":
        dataflow.execute(main)
    """
    path = arena.write("waiting.py", code)
    programs = [arena.start([sys.executable, str(path), "flag"]) for _ in range(2)]
    for program in programs:
        program.wait_for("begun")
    assert [line.split()[0] for line in told("list")[1].splitlines()[1:]] == ["waiting", "waiting-2"]
    assert told("stop", "waiting-2")[0] == 0
    (arena.folder / "flag").touch()
    assert sorted(program.end().status for program in programs) == [0, 143]
