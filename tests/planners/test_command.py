"""The command line: requests in two formats, plans that are requests again, and errors that say what to do."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planners import Intervals, Tasks
from planners.cli.command import main
from planners.cli.files import read_request
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project
from planners.mtm.tables import write
from planners.mtm.transitions import Transitions

SIZES, LOADS = [5, 6, 9, 1, 8, 4, 1, 3, 2, 6], [8, 4, 7, 9, 2, 4, 1, 4, 7, 5]
REQUEST = {"sizes": SIZES, "loads": LOADS, "cuts": [0, 4, 7, 10]}


@pytest.fixture
def now(tmp_path: Path) -> str:
    path = tmp_path / "now.json"
    path.write_text(json.dumps(REQUEST))
    return str(path)


def test_a_plan_in_either_format_is_the_next_request(
    now: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("next.json", "next.parquet"):
        path = str(tmp_path / name)
        assert main(["plan", now, "--nodes", "5", "--tau", "0.5", "--output", path]) == 0
        assert "ssm: 9 of 45 moves" in capsys.readouterr().out
        assert main(["plan", path, "--nodes", "5", "--tau", "0.5", "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert again["cost"] == 0 and again["moves"] == [] and again["met"]


def test_json_has_all_of_a_plan(now: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", now, "--nodes", "5", "--tau", "0.5", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["cost"] == 9 and plan["planner"] == "ssm"
    before, after = Intervals(REQUEST["cuts"]).map(), Intervals(plan["cuts"], plan["nodes"]).map()
    assert plan["moves"] == [[i, int(before[i]), int(after[i])] for i in np.flatnonzero(before != after)]


def test_rows_of_a_table_come_in_any_order(tmp_path: Path) -> None:
    path = str(tmp_path / "now.parquet")
    order = np.random.default_rng(0).permutation(10)
    columns = {"bin": order, "size": np.array(SIZES)[order], "load": np.array(LOADS)[order]}
    pq.write_table(pa.table({**columns, "node": np.array([0] * 4 + [1] * 3 + [2] * 3)[order]}), path)
    current, tasks = read_request(path)
    assert current.intervals() == Intervals([0, 4, 7, 10]) and tasks == Tasks(SIZES, LOADS)


def test_standard_input_is_a_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"sizes": [1, 1], "loads": [1, 1], "map": [0, 0]})))
    assert main(["plan", "-", "--nodes", "2", "--tau", "0"]) == 0
    assert "joins" in capsys.readouterr().out


def test_compare_shows_every_planner_and_draws_them(
    now: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transitions = Transitions([3, 4, 5], np.full((3, 3), 1 / 3))
    write(tmp_path / "tables", project(MTMProblem(Tasks(SIZES, LOADS), transitions, tau=0.5, gamma=0.5)))
    picture = tmp_path / "all.png"
    arguments = ["--nodes", "5", "--tau", "0.5", "--tables", str(tmp_path / "tables"), "--picture", str(picture)]
    assert main(["compare", now, *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    costs = {line.split()[0]: float(line.split()[1]) for line in lines[1:]}
    assert set(costs) == {"ssm", "mtm-aware", "storm", "consistent-hashing", "redist"}
    assert costs["ssm"] == 9 <= costs["mtm-aware"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_compare_says_who_cannot(now: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", now, "--nodes", "4", "--tau", "0.2"]) == 0
    assert "infeasible" in capsys.readouterr().out
    scattered = tmp_path / "scattered.json"
    scattered.write_text(json.dumps({"sizes": [1, 1, 1], "loads": [1, 1, 1], "map": [0, 1, 0]}))
    assert main(["compare", str(scattered), "--nodes", "2", "--tau", "0.5"]) == 0
    out = capsys.readouterr().out
    assert "refused" in out and "the tasks of node 0 are not consecutive" in out and "storm" in out


def test_explain_names_the_smallest_tau_and_what_is_in_the_way(now: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", now, "--nodes", "4", "--tau", "0.2"]) == 1
    out = capsys.readouterr().out
    assert "INFEASIBLE. The smallest tau is 0.254902." in out
    assert "its greatest load is 16, of the tasks 2..3" in out
    assert main(["explain", now, "--nodes", "4", "--tau", "0.254902"]) == 0
    assert "feasible" in capsys.readouterr().out
    assert main(["explain", now, "--nodes", "7", "--tau", "0.2"]) == 1
    assert "Task 3 alone has 9: no cut helps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[1, 2]", "not a JSON object"),
        ("{", "is not JSON"),
        ('{"sizes": [1]}', "says nothing of loads"),
        ('{"sizes": [1], "loads": [1]}', "by cuts or by map"),
        ('{"sizes": [1], "loads": [1], "cuts": [0, 1], "map": [0]}', "by one of them only"),
        ('{"sizes": 1, "loads": [1], "cuts": [0, 1]}', "'sizes' in .* is not a list"),
        ('{"sizes": ["a"], "loads": [1], "cuts": [0, 1]}', "sizes are numbers"),
        ('{"sizes": [-1], "loads": [1], "cuts": [0, 1]}', "task 0 has -1"),
        ('{"sizes": [1], "loads": [1], "cuts": [0, 2]}', "has 2 tasks, and there are 1 sizes"),
        ('{"sizes": [1, 2], "loads": [1], "cuts": [0, 2]}', "2 sizes and 1 loads"),
        ('{"sizes": [1], "loads": [1], "cuts": [0, "x"]}', "cuts are whole numbers"),
    ],
)
def test_requests_that_make_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, complaint: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    assert main(["plan", str(path), "--nodes", "2", "--tau", "1"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("python -m planners: ") and len(err.splitlines()) == 1
    assert re.search(complaint, err)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"size": [1], "load": [1]}, "has no column node; it has size, load"),
        ({"size": [1, 2], "load": [1, 1], "node": [0, 0], "bin": [0, 0]}, "each of 0 to 1 once"),
        ({"size": [1, None], "load": [1, 1], "node": [0, 0]}, "size in .* has empty places"),
        ({"size": [1], "load": [1], "node": [0.5]}, "not of whole numbers"),
    ],
)
def test_tables_that_make_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: dict[str, list[object]], complaint: str
) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table(columns), path)
    assert main(["plan", str(path), "--nodes", "2", "--tau", "1"]) == 2
    assert re.search(complaint, capsys.readouterr().err)


def test_files_that_are_not_there(tmp_path: Path, now: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder").mkdir()
    asks = [["plan", "--nodes", "2", "--tau", "1"], ["loop", "--dry-run"]]
    for command, *options in asks:
        for name in ("none.json", "none.parquet"):
            path = str(tmp_path / name)
            assert main([command, path, *options]) == 2
            assert capsys.readouterr().err == f"python -m planners: cannot read {path}: No such file or directory\n"
        assert main([command, str(tmp_path / "folder"), *options]) == 2
        assert capsys.readouterr().err.endswith("folder: Is a directory\n")
    (tmp_path / "text.parquet").write_text("no table")
    assert main(["plan", str(tmp_path / "text.parquet"), "--nodes", "2", "--tau", "1"]) == 2
    assert "cannot read" in capsys.readouterr().err
    assert main(["plan", now, "--nodes", "5", "--tau", "0.5", "--output", str(tmp_path / "no" / "x.json")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert main(["plan", now, "--nodes", "5", "--tau", "0.5", "--planner", "mtm-aware"]) == 2
    assert "--tables" in capsys.readouterr().err
    assert main(["compare", now, "--nodes", "5", "--tau", "0.5", "--picture", str(tmp_path / "all.xyz")]) == 2
    assert "cannot draw" in capsys.readouterr().err


def test_it_runs_as_a_module(now: str) -> None:
    command = [sys.executable, "-m", "planners", "plan", now, "--nodes", "4", "--tau", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Ask for tau = 0.254902 or more" in done.stderr
