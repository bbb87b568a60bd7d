"""Compiled folds on disk: compiled once for all processes, and anew when anything that they use has changed."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dataflow.columns.compiling import Module, cache_directory
from dataflow.columns.fold import FoldError
from dataflow.columns.loop import head, loop

PROGRAM = """
import json, sys
from dataflow.columns import Columns
from dataflow.columns.keyed import FoldStore, Side
from users import add
if len(sys.argv) > 1:  # two at once: wait for the other
    print("ready", flush=True); sys.stdin.readline()
operator = FoldStore("x", [Side("k", "v", add)], None, 4, None)
operator.run(0, [[Columns({"k": [1, 1], "v": [5, 6]})]])
stats = operator._drivers[0]._drive.stats
print(json.dumps([sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), operator.table.read().rows()]))
"""
USERS = """
from dataflow.columns.fold import fold
import settings
STEP = 100
def helper(x):
    return x + STEP
@fold(state={"n": "i8"})
def add(key, value, state):
    state.n += helper(value) * settings.FACTOR
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's modules, in a folder of their own, and an empty cache."""
    (tmp_path / "users.py").write_text(USERS)
    (tmp_path / "settings.py").write_text("FACTOR = 2\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def start(project: Path, *arguments: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(project), os.getcwd()])
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def outcome(process: subprocess.Popen[str], text: str = "") -> list[Any]:
    out, _ = process.communicate(text, timeout=120)
    assert process.returncode == 0
    found: list[Any] = json.loads(out.splitlines()[-1])
    return found


def test_processes_that_want_the_same_fold_compile_it_once(project: Path) -> None:
    both = [start(project, "together") for _ in range(2)]
    for process in both:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [outcome(process) for process in both]
    assert sorted(answers) == [[0, 1, [[1, 422]]], [1, 0, [[1, 422]]]]  # one miss in all
    assert outcome(start(project)) == [1, 0, [[1, 422]]]


def digest(folder: Path, **changes: str) -> Any:
    """The module that is made for the fold in `users`, once the user has changed something. Nothing is compiled."""
    (folder / "users.py").write_text(changes.get("users", USERS))
    (folder / "settings.py").write_text(changes.get("settings", "FACTOR = 2\n"))
    for name in ("users", "settings"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode  # two changes may fall into one second
    try:
        users: ModuleType = importlib.import_module("users")
    finally:
        sys.dont_write_bytecode = before
    import linecache

    linecache.clearcache()
    return Module(users.add.function, head(()), loop(users.add, ("v",), True, False)).path


def test_whatever_a_fold_uses_makes_another_module_when_it_changes(project: Path) -> None:
    first = digest(project)
    assert first.is_relative_to(project / "cache") and first.exists()
    changed = [
        digest(project, users=USERS.replace("STEP = 100", "STEP = 101")),
        digest(project, users=USERS.replace("x + STEP", "x - STEP")),
        digest(project, users=USERS.replace("helper(value) *", "helper(value) +")),
        digest(project, settings="FACTOR = 3\n"),
    ]
    assert len({first, *changed}) == 5
    assert digest(project) == first
    assert digest(project, users=f"UNRELATED = 5\n{USERS}") == first


def test_the_same_name_for_different_things_is_refused(project: Path) -> None:
    (project / "elsewhere.py").write_text("STEP = 7\ndef other(x):\n    return x + STEP\n")
    users = USERS.replace("import settings\n", "import settings\nfrom elsewhere import other\n")
    with pytest.raises(FoldError, match="uses STEP, which means something else in another function that is compiled"):
        digest(project, users=users.replace("helper(value) *", "helper(other(value)) *"))
    assert digest(project, users=users.replace("helper(value) *", "other(value) *")).exists()


def test_constants_of_every_kind_are_written_down(project: Path) -> None:
    constants = """
import enum, math, numpy as np
class Color(enum.IntEnum):
    RED = 3
VALUES = (Color.RED, float("inf"), float("nan"), -0.0, np.float32(0.1), np.uint64(2**64 - 1), True, "x", (1, (2.5,)))
A, B, C, D, E, F, G, H, I = VALUES
"""
    body = "state.n += int(A + B + C + D + E + F + G + len(H) + I[0])"
    users = constants + USERS.replace("state.n += helper(value) * settings.FACTOR", body)
    path = digest(project, users=users)
    made = vars(sys.modules[f"_megaphone_folds.{path.stem}"])
    values = importlib.import_module("users").VALUES
    for name, value in zip("ABCDEFGHI", values, strict=True):
        assert made[name] == value or (value != value and made[name] != made[name])
        if hasattr(value, "dtype"):
            assert type(made[name]) is type(value)


def test_what_a_compiled_fold_cannot_use_from_outside_is_said(project: Path) -> None:
    users = USERS.replace("STEP = 100", "STEP = {1: 2}")
    with pytest.raises(FoldError, match="helper uses STEP, which is a dict: a compiled fold can use numbers, strings"):
        digest(project, users=users)


def test_a_cache_that_cannot_be_written_to_gives_way_to_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "megaphone-dataflow" / "folds" and cache_directory().is_dir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    expected = temporary / f"megaphone-dataflow-folds-{os.getuid()}"
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a file"))  # no folder can be made in it
    assert cache_directory() == expected and expected.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # read-only (which root does not notice)
    assert cache_directory() == expected
    monkeypatch.setattr(os, "getuid", lambda: expected.stat().st_uid + 1)
    (temporary / f"megaphone-dataflow-folds-{os.getuid()}").mkdir()
    with pytest.raises(
        PermissionError, match="belongs to somebody else: set XDG_CACHE_HOME to a directory of your own"
    ):
        cache_directory()
