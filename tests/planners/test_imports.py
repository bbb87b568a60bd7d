"""`import planners` brings in no engine and no compiler, and everything that it promises is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import planners

HEAVY = ("trio", "numba", "megaphone", "dataflow", "pyspark", "pyarrow")
ROOT = Path(planners.__file__).parent
SPARK = "planners.spark"


def imported_by(program: str) -> set[str]:
    """Which of the heavy packages a fresh interpreter has imported after this program."""
    check = f"{program}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "program",
    [
        "import planners",
        "from planners import BadRequest, BinMap, Intervals, Limits, Plan, Schedule, Tasks",
        "from planners import consistent_hashing, redist, schedule, simple_ssm, storm",
        "from planners import mini_migrations, progressive, scheduled",
        "from planners import storm, Intervals; storm(Intervals([0, 4]), nodes=2, sizes=[1] * 4, loads=[1] * 4)",
    ],
)
def test_what_needs_no_engine_imports_none(program: str) -> None:
    assert imported_by(program) == set()


def test_help_waits_for_no_compiler() -> None:
    assert imported_by("import planners.cli.command") == {"pyarrow"}  # requests may be Parquet


def test_no_planner_imports_megaphone_or_pyspark() -> None:
    """All modules together: the loop has Protocols, and strategies are made on demand."""
    paths = [path.relative_to(ROOT.parent).with_suffix("") for path in sorted(ROOT.rglob("*.py"))]
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths if path.name != "__main__"]
    chosen = [name for name in names if not name.startswith(SPARK)]
    assert len(chosen) > 30
    assert not {"megaphone", "pyspark"} & imported_by("\n".join(f"import {name}" for name in chosen))


def test_every_name_of_the_front_door_is_there() -> None:
    assert sorted(planners._MODULES) == sorted(planners.__all__)
    for name in planners.__all__:
        assert getattr(planners, name).__name__ == name
    assert set(planners.__all__) <= set(dir(planners))


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'planners' has no attribute 'sms'"):
        _ = planners.sms
