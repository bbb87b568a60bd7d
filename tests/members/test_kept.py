"""Real processes with snapshots: scaled up and down, killed with SIGKILL in between, and going on."""

from __future__ import annotations

from pathlib import Path

import pytest

import dataflow
from tests.members import kept

PLANS = {
    "up, killed, down": [("scale", 3), ("kill", 2), ("scale", 2), ("kill", 1), ("drain", 1)],
    "down, killed, up": [("scale", 1), ("kill", 0), ("scale", 3), ("scale", 2), ("kill", 1)],
}
LIVES = {"up, killed, down": [2, 2, 3, 3, 2], "down, killed, up": [2, 2, 1, 1, 1]}


@pytest.mark.parametrize("name", PLANS)
def test_a_run_with_recovery_is_scaled_and_killed_and_goes_on(name: str, tmp_path: Path) -> None:
    recovery = dataflow.Recovery(tmp_path / "state", every=0.1)
    dataflow.execute(kept.main, tmp_path, PLANS[name], workers=2, recovery=recovery)
    lines = (tmp_path / "done").read_text().splitlines()
    steps = [f"{what} {number}" for what, number in PLANS[name]]
    assert lines == [f"{step}, of {workers}" for step, workers in zip(steps, LIVES[name], strict=True)]
    assert kept.table(tmp_path) == kept.expected()


def test_a_worker_that_dies_is_not_replaced_if_it_need_not_be(tmp_path: Path) -> None:
    recovery = dataflow.Recovery(tmp_path / "state", every=0.1, replace=False)
    plan = [("kill", 1), ("kill", 1), ("scale", 2)]
    dataflow.execute(kept.main, tmp_path, plan, workers=3, recovery=recovery)
    assert (tmp_path / "done").read_text().splitlines() == ["kill 1, of 3", "kill 1, of 2", "scale 2, of 1"]
    assert kept.table(tmp_path) == kept.expected()
