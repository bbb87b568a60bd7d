"""The socket of a run: who may have it, and that nothing is left of it."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dataflow.asking.client import NoSuchRun, ask_run, list_runs
from dataflow.asking.door import NameTaken, opened
from dataflow.asking.folder import NoFolder, check_run_name, make_folder, open_folders
from dataflow.asking.messages import Question
from dataflow.commands.listing import _row

DIES = """
import os, sys
from dataflow.asking.door import opened
with opened("app", 1):
    print("open", flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), 9)
"""


def test_it_is_its_owners_alone_and_gone_at_the_end(runs: Path) -> None:
    with opened("app", 3) as door:
        assert door is not None
        assert door.facts.workers == 3
        assert stat.S_IMODE(runs.lstat().st_mode) == 0o700
        assert stat.S_IMODE((runs / "app.sock").lstat().st_mode) == 0o600
        assert stat.S_IMODE((runs / "app.lock").lstat().st_mode) == 0o600
        assert list_runs() == ["app"]
    assert os.listdir(runs) == []
    assert list_runs() == []


def test_a_run_without_a_name_has_none(runs: Path) -> None:
    with opened(None, 1) as door:
        assert door is None
    assert not runs.exists()


def test_a_name_is_had_by_one_at_a_time(runs: Path) -> None:
    with opened("app", 1):
        with (
            pytest.raises(NameTaken, match=r"there is a run called 'app' already .* another name, or wait"),
            opened("app", 1),
        ):
            pass
        with opened("other", 1):
            assert list_runs() == ["app", "other"]
    with opened("app", 1):
        assert list_runs() == ["app"]


def test_what_a_dead_run_has_left_is_replaced(runs: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", DIES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(NameTaken), opened("app", 1):
            pass
        process.communicate()
        assert process.returncode == -9
    assert sorted(os.listdir(runs)) == ["app.lock", "app.sock"]
    assert list_runs() == []
    with pytest.raises(NoSuchRun, match=r"there is no run called 'app' in .*; there are: none"):
        ask_run("app", Question("who"), 1.0)
    with opened("app", 1):
        assert list_runs() == ["app"]
    assert os.listdir(runs) == []


def test_a_lock_file_that_was_removed_meanwhile_does_not_count(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends removes its lock file; one that has opened it before must not take that for the name."""
    import fcntl

    flock, removed = fcntl.flock, []

    def remove_first(fd: int, how: int) -> None:
        if not removed:
            removed.append((runs / "app.lock").unlink())
        flock(fd, how)

    monkeypatch.setattr("fcntl.flock", remove_first)
    with opened("app", 1):
        assert removed
        with pytest.raises(NameTaken), opened("app", 1):
            pass


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755, 0o740])
def test_a_folder_that_others_may_enter_is_refused(runs: Path, mode: int) -> None:
    runs.mkdir()
    runs.chmod(mode)
    with pytest.raises(NoFolder, match=f"other users may enter .*mode {mode:o}.*: chmod 700 it"), make_folder():
        pass


def test_a_folder_of_somebody_else_is_refused(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.mkdir(mode=0o700)
    me = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: me + 1)
    expected = f"belongs to user {me}, and this is user {me + 1}: set XDG_RUNTIME_DIR"
    with pytest.raises(NoFolder, match=expected), make_folder():
        pass
    with pytest.raises(NoFolder, match="belongs to user"), open_folders():
        pass


def test_a_link_to_a_folder_is_not_followed(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    runs.symlink_to(tmp_path / "mine")
    with pytest.raises(NoFolder, match="a run with a name needs a folder"), make_folder():
        pass


def test_without_a_runtime_folder_it_is_in_the_temporary_one(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever has a runtime folder finds it there."""
    given = os.environ["XDG_RUNTIME_DIR"]
    for value in ("", "relative", "/nowhere/at/all"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        with opened("app", 1), make_folder() as folder:
            assert folder.path.name == f"dataflow-{os.geteuid()}"
            monkeypatch.setenv("XDG_RUNTIME_DIR", given)
            assert list_runs() == ["app"]


@pytest.mark.parametrize("name", ["", ".app", "a/b", "../app", "a b", "x" * 65, "ä", "-x", "a\n"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(ValueError, match="a run cannot be called"):
        check_run_name(name)


def test_a_run_that_does_not_answer_is_listed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataflow.commands.listing._PATIENCE", 0.01)
    with opened("app", 1):
        assert _row("app") == ["app", "", "", "does not answer"]


def test_a_crowded_door_is_alive(runs: Path) -> None:
    with opened("app", 1), open_folders() as folders:
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(folders[0].address("app.sock"))
        assert list_runs() == ["app"]
        for each in waiting:
            each.close()
