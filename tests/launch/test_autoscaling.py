"""The autoscaler beside a real run: a worker joins because of the rate, and leaves when it falls."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dataflow.errors import DataflowError
from planners.cli.command import main as planners_command
from planners.live.autoscale import RunningWorkers, ScalingBeside
from planners.scaling.autoscaler import Autoscaler, ScaleSettings
from tests.docs.console import ROOT
from tests.docs.test_fragments import blocks
from tests.launch.arena import READY, Arena, wait_until

FAILSAFE = 120.0  # seconds
HIGH, LOW = 600, 50  # records a second, of two milliseconds each


def set_rate(folder: Path, rate: int) -> None:
    (folder / "new").write_text(str(rate))
    (folder / "new").replace(folder / "rates.txt")


def test_a_run_has_the_workers_that_its_rate_needs(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(arena.runtime))
    arena.write("app.py", blocks(ROOT / "docs" / "autoscaling.md")[1])
    set_rate(arena.folder, HIGH)
    run = arena.cli("run", "app:main", "rates.txt", "--name", "scaled")
    workers = RunningWorkers("scaled")
    wait_until(lambda: begun(workers), "the run", READY)
    settings = ScaleSettings(maximum=2, cool_down=1)
    rate = HIGH
    beside = ScalingBeside(workers, Autoscaler(settings), offered=lambda: {"orders": rate})
    said = steps(beside, workers, 2)
    assert any("scale from 1 to 2: useful work for" in line for line in said), said
    rate = LOW
    set_rate(arena.folder, LOW)
    said = steps(beside, workers, 1)
    assert any("scale from 2 to 1" in line for line in said), said
    dry = ["autoscale", "scaled", "--every", "0.5", "--seconds", "1.5", "--dry-run", f"--offered=orders={HIGH}"]
    assert planners_command(dry) == 0
    assert "(dry run) interval 1: scale from 1 to 2" in capsys.readouterr().out
    assert len(workers.read()) == 1
    set_rate(arena.folder, 0)
    assert run.end(READY).status == 0
    assert planners_command(["autoscale", "scaled"]) == 2
    assert "scaled" in capsys.readouterr().err


def begun(workers: RunningWorkers) -> bool:
    """Whether the run answers."""
    try:
        return bool(workers.read())
    except DataflowError:
        return False


def steps(beside: ScalingBeside, workers: RunningWorkers, wanted: int) -> list[str]:
    """Has the autoscaler look until there are so many workers; what it said."""
    said: list[str] = []
    end = time.monotonic() + FAILSAFE
    while len(workers.read()) != wanted or not said or "under way" in said[-1]:
        assert time.monotonic() < end, said
        time.sleep(0.5)
        said += beside.step()
    return said


WRONG = [["--every", "0"], ["--minimum", "0"], ["--offered", "orders"], ["--utilisation", "2"]]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_makes_no_sense_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert planners_command(["autoscale", "nowhere", *wrong]) == 2
    assert wrong[0].strip("-") in capsys.readouterr().err
