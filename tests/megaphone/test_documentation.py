"""Every block of Python in the pages on migration, plans and columns runs: a page is a program. So does the README."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["migration", "plans", "columns"])
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 2 and text.count("```") == 2 * len(blocks), "no block is left out"
    done = _run(tmp_path, "\n".join(blocks))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_the_programs_of_the_readme_run_and_show_something(tmp_path: Path) -> None:
    first, second, _ = _programs()
    done = _run(tmp_path, first)
    counted = [f"0 {word} {count}" for word, count in [("dog", 1), ("fox", 1), ("lazy", 1), ("quick", 1), ("the", 2)]]
    assert (sorted(done.stdout.splitlines()), done.stderr) == (counted, "")
    done = _run(tmp_path, second)
    everything, nothing = sorted(done.stdout.splitlines())
    assert re.fullmatch(r"worker 0 has 1,048,5\d\d keys", everything)  # 20 million draws of 1,048,576 keys
    assert (nothing, done.stderr) == ("worker 1 has 0 keys", "")


def test_the_program_of_the_readme_that_loses_nothing_goes_on(tmp_path: Path) -> None:
    """Its command, twice: the second run finds what was appended, and nothing else."""
    (tmp_path / "app.py").write_text(_programs()[2])
    (tmp_path / "logs").mkdir()
    command = ["-m", "dataflow", "run", "app:main", "--workers", "2", "--recovery", "state/", "logs/", "out.db"]
    for text, totals in (("the quick fox\nthe dog\n", [("dog", 1), ("fox", 1), ("quick", 1), ("the", 2)]),
                         ("the end\n", [("dog", 1), ("end", 1), ("fox", 1), ("quick", 1), ("the", 3)])):  # fmt: skip
        with (tmp_path / "logs" / "a.txt").open("a") as file:
            file.write(text)
        done = _execute(tmp_path, *command)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        with closing(sqlite3.connect(tmp_path / "out.db")) as database:
            assert database.execute("select word, total from totals order by word").fetchall() == totals


def _programs() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)


def _run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    path = folder / "program_of_the_page.py"  # folds are compiled from their file
    path.write_text(program)
    return _execute(folder, path.name)


def _execute(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments], cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
