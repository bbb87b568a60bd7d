"""The loop of `python -m planners live` beside a real run: it logs, has tables made, decides, and bins move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dataflow.asking.client import NoSuchRun
from dataflow.asking.messages import Refused
from planners.cli.command import main as planners_command
from planners.live.beside import Beside, LiveSettings
from planners.live.log import LoadLog
from planners.live.running import RunningOperator
from planners.model import Tasks
from planners.mtm import tables
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project
from planners.mtm.transitions import from_history
from tests.launch.arena import READY, Arena, Program, wait_until

APP = """
import pathlib
import megaphone

def count(key, one, total):
    total = (total or 0) + one
    return total, []

async def main(worker, folder):
    folder = pathlib.Path(folder)
    with worker.dataflow("counts") as scope:
        control, configuration = scope.input("control")
        numbers, stream = scope.input("numbers")
        totals = megaphone.state_machine(configuration, stream, fold=count, bins=16, name="totals", interval=0.0)
        probe = totals.probe()
    if worker.index:
        return
    control.send([megaphone.Pin(3, 1)])
    n = 0
    while (rate := (folder / "rate").read_text()) != "end":
        keys = range(16) if rate != "drift" else range(4)
        numbers.send([(key, 1) for key in keys for _ in range(1 if rate == "low" else 60)])
        n += 1
        numbers.advance_to(n)
        control.advance_to(n)
        await probe.wait_passed(n - 1)
        if n == 3:
            print("begun", flush=True)
        await trio.sleep(0.01)
"""

LOW, BEARS, HIGH = 1_600, 5_000, 96_000  # records in a second: what there is, what a worker bears, what there is then


def rate(arena: Arena, text: str) -> None:
    (arena.folder / "new").write_text(text)
    (arena.folder / "new").rename(arena.folder / "rate")


@pytest.fixture
def run(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """Two workers that count until the file `rate` says "end"."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(arena.runtime))
    monkeypatch.setenv("TMPDIR", str(arena.temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    rate(arena, "low")
    arena.write("counting.py", APP)
    program = arena.cli("run", "counting:main", "--workers", "2", ".")
    program.wait_for("begun")
    yield program
    rate(arena, "end")
    assert program.end().status == 0


def make(log: LoadLog, options: Sequence[str]) -> Callable[[Path], None]:
    """Tables from a log without Spark, which other tests have: means by bin, and one node or two by turns."""

    def in_one_process(out: Path) -> None:
        log.flush()
        rows = pq.read_table(log.folder)
        bins, costs, sizes = (rows.column(name).to_numpy() for name in ("bin", "cost", "bytes"))
        assert bins.max() < 16 and options[options.index("--bins") + 1] == "16"
        loads = np.bincount(bins, costs, 16) / len(set(rows.column("interval").to_pylist()))
        largest = np.zeros(16)
        np.maximum.at(largest, bins, sizes)
        problem = MTMProblem(Tasks(largest, loads), from_history([1, 2, 1]), tau=1.0, gamma=0.5)
        tables.write(out, project(problem))

    return in_one_process


def test_planning_beside_a_run(run: Program, arena: Arena) -> None:
    operator = RunningOperator("counting", "totals", "all-at-once")
    settings = LiveSettings((1, 2), BEARS, "records", tau=1.0, gamma=0.5, drift=0.3, warm_up=3)
    beside = Beside(operator, arena.folder / "tables", settings, make)
    said: list[str] = []

    def until(*texts: str) -> None:
        def stepped() -> bool:
            said.extend(beside.step())
            return all(any(text in line for line in said) for text in texts)

        wait_until(stepped, " and ".join(texts), READY)

    until("bins are laid in intervals", "2 workers are used, and 1 wanted", "no tables yet", "tables 1 are in use")
    assert operator.pinned == {3: 1}
    rate(arena, "high")
    until("1 workers are used, and 2 wanted", "mtm_aware, from tables 1")
    rate(arena, "drift")
    until("of the load is elsewhere than in the tables", "tables 2 are in use")
    beside.close()
    (log,) = (arena.folder / "tables").glob("log-16-*")
    rows = pq.read_table(log).to_pylist()
    assert {row["worker"] for row in rows} == {0, 1} and max(row["cost"] for row in rows) > BEARS / 16
    apart = [row for row in rows if not row["bytes"] and row["cost"]]
    assert apart and {row["worker"] for row in apart} == {1}  # the key that lives apart


def test_what_cannot_be_planned_for(run: Program, arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Refused, match="no stateful operator 'others'; there are: totals"):
        RunningOperator("counting", "others")
    where = ["--tables", str(arena.folder / "tables")]

    def refused(*options: str) -> str:
        assert planners_command(["live", *options, *where]) == 2
        return capsys.readouterr().err

    assert "there is no run called 'nobody'" in refused("nobody")
    assert "--nodes says up to 3, and the run has 2 workers" in refused("counting", "--nodes", "1:3")
    assert "say --capacity" in refused("counting", "--cost", "records")
    assert planners_command(["live", "counting", *where, "--seconds", "0.1", "--every", "0.05"]) == 0
    assert "totals: 16 bins on 2 workers" in capsys.readouterr().out


def test_the_end_of_the_run_is_the_end_of_it(run: Program, arena: Arena) -> None:
    operator = RunningOperator("counting", "totals")
    rate(arena, "end")
    run.end()
    with pytest.raises(NoSuchRun):
        operator.look()
