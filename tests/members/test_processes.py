"""Workers that are real processes come and go; asked by main, from another shell, and by a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dataflow
from tests.members import app

PLAN = {20: 4, 60: 2, 100: 3, 140: 1, 180: 2}


@pytest.mark.parametrize("in_process", [True, False])
def test_workers_come_and_go(in_process: bool) -> None:
    results = dataflow.execute(app.steered, PLAN, 400, workers=2, in_process=in_process)
    assert results[0] == [("done", None)] * len(PLAN)


def _ask(*arguments: str, check: bool = True) -> str:
    command = [sys.executable, "-m", "dataflow", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=check).stdout


@pytest.mark.parametrize("how", ["drain", "scale", "signal"])
def test_a_run_is_scaled_from_another_shell(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    command = [sys.executable, "-m", "dataflow", "run", "tests.members.app:main", "--workers", "2", "--name", "app"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pids = _pids([run.stdout.readline(), run.stdout.readline()])
        assert "done: as of time" in _ask("scale", "app", "3")
        assert "workers 0, 1, 2, as of time" in _ask("members", "app")
        assert "app: 3 workers" in _ask("status", "app")  # the one that joined is asked, too
        pids |= _pids([run.stdout.readline()])
        if how == "signal":
            os.kill(pids[2], signal.SIGTERM)
        else:
            which = ["--worker", "2"] if how == "drain" else ["2"]
            _ask(how, "app", *which, check=False)  # the program ends as soon as they are two, perhaps before it answers
        assert "records came out" in run.stdout.read()
        assert run.wait(30) == 0
    for pid in pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def _pids(lines: list[str]) -> dict[int, int]:
    return {int(line.split()[1]): int(line.split()[-1]) for line in lines}
