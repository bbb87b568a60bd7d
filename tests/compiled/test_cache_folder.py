"""Where compiled code is kept, and whom it is taken from."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba import int64

from dataflow.compiled.cache_folder import Untrusted, check_owner, open_cache_folder
from dataflow.compiled.kernel import kernel
from tests.compiled.test_damage import ROOT, run, shift

as_root = pytest.mark.skipif(not ROOT, reason="gives files away, which root may")
NOBODY = 65534


def place() -> Path | None:
    with open_cache_folder() as found:
        return None if found is None else found.path


class Planted:
    """Unpickling it leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._trace),)


def plant(trace: Path) -> None:
    """Puts code where `shift` is looked for, in whichever folder is used."""
    compiled: Any = kernel()(shift)
    with open_cache_folder() as found:
        assert found is not None
        compiled._cache.entry(int64(int64)).write(found, pickle.dumps(Planted(trace)))


def test_it_is_ours_alone_whatever_the_umask(cache: Path) -> None:
    before = os.umask(0)
    try:
        assert place() == cache
        run()
    finally:
        os.umask(before)
    for path in (cache.parent, cache):
        assert path.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in cache.iterdir()} == {0o600}


@as_root
def test_planted_code_runs_where_only_we_could_have_planted_it(cache: Path, tmp_path: Path) -> None:
    """So the tests below would fail without the checks that they are for."""
    plant(tmp_path / "trace")
    run()
    assert (tmp_path / "trace").exists()


@as_root
@pytest.mark.parametrize("which", ["folder", "parent"])
@pytest.mark.parametrize("how", ["another's", "group", "all", "link"])
def test_code_is_not_taken_from_where_others_may_put_it(
    which: str, how: str, cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plant(tmp_path / "trace")
    path = {"folder": cache, "parent": cache.parent}[which]
    if how == "another's":
        os.chown(path, NOBODY, -1)
    elif how == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.chmod(0o770 if how == "group" else 0o707)
    assert run() == (1, 0) and run() == (1, 0)
    assert not (tmp_path / "trace").exists()
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2, said
    assert said[0].startswith("dataflow: compiled code is not taken from where others may put it")
    assert str(path) in said[0]
    assert "set XDG_CACHE_HOME to a folder of your own" in said[0]
    assert said[1].startswith("dataflow: compiled code cannot be kept, and every process compiles for itself")


@as_root
@pytest.mark.parametrize("damage", ["another's", "open to all"])
def test_a_file_of_somebody_else_is_not_read(damage: str, cache: Path, tmp_path: Path) -> None:
    plant(tmp_path / "trace")
    (file,) = cache.iterdir()
    os.chown(file, NOBODY, -1) if damage == "another's" else file.chmod(0o602)
    assert run() == (1, 0)
    assert not (tmp_path / "trace").exists()


@as_root
def test_a_home_that_another_made_is_fine_as_long_as_ours_in_it_is_ours(cache: Path) -> None:
    cache.parent.parent.mkdir()
    os.chown(cache.parent.parent, NOBODY, -1)
    cache.parent.parent.chmod(0o777)
    assert place() == cache
    assert run() == (1, 0) and run() == (0, 1)


def test_a_folder_that_cannot_be_written_to_gives_way_to_a_temporary_one(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dataflow.compiled.cache_folder.gettempdir", lambda: str(tmp_path))
    expected = tmp_path / f"megaphone-dataflow-{os.geteuid()}" / "compiled"
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a file"))  # no folder can be made in it
    assert place() == expected and expected.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    real = os.access
    (tmp_path / "cache" / "megaphone-dataflow" / "compiled").mkdir(parents=True)
    inode = (tmp_path / "cache" / "megaphone-dataflow" / "compiled").stat().st_ino

    def read_only(path: str, mode: int, *, dir_fd: int) -> bool:  # which root does not notice
        return os.fstat(dir_fd).st_ino != inode and real(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "access", read_only)
    assert place() == expected
    assert capfd.readouterr().err == ""
    expected.parent.chmod(0o777)  # and the temporary one is held to the same
    assert place() is None
    assert "not taken from where others may put it" in capfd.readouterr().err


@pytest.mark.parametrize("home", ["", "relative/path"])
def test_a_home_that_is_none(
    home: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    assert place() == tmp_path / "home" / ".cache" / "megaphone-dataflow" / "compiled"
    monkeypatch.setenv("HOME", "/dev/null")
    assert place() is None
    assert run() == (1, 0)
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and "/dev/null" in said


def test_owners() -> None:
    status = list(os.stat("/"))
    status[4] = os.geteuid()
    for mode, fine in ((0o40755, True), (0o40775, False), (0o40757, False), (0o100600, True), (0o100620, False)):
        status[0] = mode
        if fine:
            check_owner(os.stat_result(status), "it")
        else:
            with pytest.raises(Untrusted, match=f"other users may write to it .mode {mode & 0o777:o}."):
                check_owner(os.stat_result(status), "it")
    status[0], status[4] = 0o40700, os.geteuid() + 1
    with pytest.raises(Untrusted, match=f"it belongs to user {os.geteuid() + 1}, and this is user {os.geteuid()}"):
        check_owner(os.stat_result(status), "it")


@pytest.fixture
def for_nobody() -> Iterator[Path]:
    """A folder that every user can reach and read, and a temporary directory in it."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


PROGRAM = """
from dataflow.compiled.kernel import kernel
@kernel("int64(int64)")
def shift(x):
    return x + 7
print(shift(5), sum(shift.stats.cache_hits.values()))
"""


@pytest.mark.parametrize("temporary", [True, False])
def test_without_a_home_and_in_folders_that_are_not_ours(temporary: bool, for_nobody: Path) -> None:
    """The usual container: a user without a home, who may not write where the packages are."""
    (for_nobody / "program.py").write_text(PROGRAM)
    su = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if ROOT else []
    if subprocess.run([*su, sys.executable, "-c", ""], check=False, capture_output=True).returncode:
        pytest.skip("another user cannot run this Python")
    environment = {
        "HOME": "/nonexistent" if ROOT else "/dev/null",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(for_nobody / "tmp"),
    }
    if not temporary:
        (for_nobody / "tmp" / f"megaphone-dataflow-{NOBODY if ROOT else os.geteuid()}").write_text("in the way")
    command = [*su, sys.executable, str(for_nobody / "program.py")]
    done = [
        subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd="/")
        for _ in range(2)
    ]
    assert [run.stdout for run in done] == ["12 0\n", "12 1\n" if temporary else "12 0\n"], done
    said = [run.stderr for run in done]
    assert said == ["", ""] if temporary else all("cannot be kept, and every process compiles" in text for text in said)
