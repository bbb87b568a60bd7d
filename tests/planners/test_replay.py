"""``python -m planners loop``: decisions from a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planners.cli.command import main

BINS, WORKERS = 8, 2
EMPTY = json.dumps({name: [] for name in ("interval", "worker", "bin", "records", "bytes", "cost")})


def write(path: Path, intervals: int) -> Path:
    rows = [(i, b % WORKERS, b, 10 if b % 2 == 0 else 1, 64, 5) for i in range(intervals) for b in range(BINS)]
    columns = dict(zip(("interval", "worker", "bin", "records", "bytes", "cost"), zip(*rows, strict=True), strict=True))
    if path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({name: list(values) for name, values in columns.items()}), path)
    else:
        path.write_text(json.dumps(columns))
    return path


@pytest.mark.parametrize("name", ["log.json", "log.parquet"])
def test_a_skewed_log(name: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["loop", str(write(tmp_path / name, 6)), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["stay", "move", "stay", "move", "stay", "move"]
    assert "for 1 of 2 intervals" in lines[0] and "mixed on bins" in lines[1] and "intervals ago" in lines[2]


def test_by_processing_time_the_same_log_is_balanced(tmp_path: Path, capsys: Any) -> None:
    assert main(["loop", str(write(tmp_path / "log.json", 4)), "--dry-run", "--cost", "cost"]) == 0
    assert "move" not in capsys.readouterr().out


def test_scaling(tmp_path: Path, capsys: Any) -> None:
    log = str(write(tmp_path / "log.json", 4))
    options = ["loop", log, "--dry-run", "--capacity", "12", "--workers", "4", "--theta", "0.5"]
    assert main([*options, "--otherwise", "storm"]) == 0
    out = capsys.readouterr().out
    assert "2 workers are used, and 4 wanted: storm on intervals, because ssm on intervals refused (the tasks" in out
    assert main(options) == 2, "bins are scattered, and nobody was named who takes that"
    assert "node 0 are not consecutive" in capsys.readouterr().err


@pytest.mark.parametrize("planner", ["min-mig", "min-table", "llfd", "mixed-bf", "readj"])
def test_any_planner(planner: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["loop", str(write(tmp_path / "log.json", 2)), "--dry-run", "--planner", planner]) == 0
    assert f"{planner.replace('-', '_')} on bins" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("{", ["--dry-run"], "cannot be read"),
        ("{}", ["--dry-run"], "needs the columns"),
        (None, [], "say --dry-run"),
        (None, ["--dry-run", "--workers", "1"], "there shall be 1"),
        (None, ["--dry-run", "--theta", "-1"], "cannot be -1.0"),
        (None, ["--dry-run", "--theta", "nan"], "cannot be nan"),
        (None, ["--dry-run", "--capacity", "0"], "capacity is above 0"),
        (None, ["--dry-run", "--table", "-1"], "a routing table of size -1 makes no sense"),
        (None, ["--dry-run", "--patience", "0"], "patience is 1 or more"),
        (None, ["--dry-run", "--cool-down", "-1"], "not patience 2, cool-down -1"),
        (EMPTY, ["--dry-run"], "has no intervals"),
        (EMPTY.replace("[]", "[0]").replace('"bytes": [0]', '"bytes": [-1]'), ["--dry-run"], "bytes must be finite"),
    ],
)
def test_what_makes_no_sense(text: str | None, options: list[str], complaint: str, tmp_path: Path, capsys: Any) -> None:
    log = write(tmp_path / "log.json", 2)
    if text is not None:
        log.write_text(text)
    assert main(["loop", str(log), *options]) == 2
    assert complaint in capsys.readouterr().err
