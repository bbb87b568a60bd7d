"""Compiled folds on disk: compiled once for all processes, and anew when anything that they use has changed."""

from __future__ import annotations

import importlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dataflow.compiled.cache_folder import open_cache_folder
from dataflow.state.folds.compiling import Module
from dataflow.state.folds.fold import FoldError
from dataflow.state.folds.loop import head, loop

PROGRAM = """
import json, sys
from dataflow.columns import Columns
from dataflow.state.stores.fold_store import FoldStore, Side
from users import add
if len(sys.argv) > 1:  # two at once: wait for the other
    print("ready", flush=True); sys.stdin.readline()
operator = FoldStore("x", [Side("k", "v", add)], None, 4, None)
operator.run(0, [[Columns({"k": [1, 1], "v": [5, 6]})]])
stats = operator._drivers[0]._drive.stats
print(json.dumps([sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), operator.table.read().rows()]))
"""
USERS = """
from dataflow.state.folds.fold import fold
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
    """A user's modules, in a folder of their own, and a cache with kernels and no folds."""
    kernels_only(tmp_path / "cache")
    (tmp_path / "users.py").write_text(USERS)
    (tmp_path / "settings.py").write_text("FACTOR = 2\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def kernels_only(cache: Path) -> None:
    """Fills a cache with the kernels that this process has compiled or loaded: compiling them takes long."""
    (cache / "megaphone-dataflow").mkdir(parents=True)
    with open_cache_folder() as place:
        assert place is not None
        without = shutil.ignore_patterns("_megaphone_folds.*", "*.lock", "*.tmp")
        shutil.copytree(place.path, cache / "megaphone-dataflow" / "compiled", ignore=without)


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
    return Module(users.add.function, head(()), loop(users.add, ("v",), True, False)).name


def test_whatever_a_fold_uses_makes_another_module_when_it_changes(project: Path) -> None:
    first = digest(project)
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
    assert digest(project, users=users.replace("helper(value) *", "other(value) *"))


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
    made = vars(sys.modules[f"_megaphone_folds.{digest(project, users=users)}"])
    values = importlib.import_module("users").VALUES
    for name, value in zip("ABCDEFGHI", values, strict=True):
        assert made[name] == value or (value != value and made[name] != made[name])
        if hasattr(value, "dtype"):
            assert type(made[name]) is type(value)


def test_what_a_compiled_fold_cannot_use_from_outside_is_said(project: Path) -> None:
    users = USERS.replace("STEP = 100", "STEP = {1: 2}")
    with pytest.raises(FoldError, match="helper uses STEP, which is a dict: a compiled fold can use numbers, strings"):
        digest(project, users=users)


TWO_WORKERS = """
import dataflow
from dataflow.state import native
from users import add

async def main(worker):
    with worker.dataflow() as scope:
        handle, stream = scope.input()
        native.state_machine(stream, key="k", value="v", fold=add)
    handle.send({"k": [1], "v": [worker.index]})

dataflow.execute(main, workers=2)
"""


def test_compiling_is_said_once_on_a_terminal(project: Path) -> None:
    """Workers write to a pipe, whatever the supervisor's standard error is; and each of them wants the fold."""
    where = project / "cache" / "megaphone-dataflow" / "compiled"
    command = [sys.executable, "-c", TWO_WORKERS]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), os.getcwd()])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    (fold,) = where.glob("_megaphone_folds.*")
    fold.unlink()
    ours, theirs = pty.openpty()
    try:
        subprocess.run(command, env=environment, stderr=theirs, timeout=120, check=True)
        os.write(theirs, b"end")
        read = b""
        while not read.endswith(b"end"):  # a terminal gives what it likes at a time
            read += os.read(ours, 1 << 16)
    finally:
        os.close(ours)
        os.close(theirs)
    said = read.decode().splitlines()
    assert said[0] == f"dataflow: compiling the fold `add` (once: kept in {where})"
    assert re.fullmatch(r"dataflow: compiled the fold `add` in \d+\.\d s", said[1])
    assert said[2:] == ["end"]  # nothing by the other worker
