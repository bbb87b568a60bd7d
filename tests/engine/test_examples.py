"""Every example runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")  # whose programs `test_gallery` runs
ELSEWHERE = ("live_planning.py",)  # needs Spark: tests/planners/test_live.py runs it among the soak tests
EXAMPLES = [
    path for path in sorted((ROOT / "examples").glob("*.py")) if path.name not in GALLERY and path.name not in ELSEWHERE
]


def output(example: Path) -> str:
    """What an example prints; fails if it fails, warns or hangs."""
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_example_runs(example: Path) -> None:
    output(example)  # which is empty for those that only count


def test_hello() -> None:
    lines = output(ROOT / "examples" / "hello.py").splitlines()
    for worker in (0, 1):  # two processes: each one's lines are in order
        mine = [line for line in lines if line.startswith(f"worker {worker} ")]
        assert mine == [f"worker {worker} saw {n} at {n}" for n in range(worker, 10, 2)]
    assert len(lines) == 10
