"""A file that cannot be used is discarded, and its function compiled again; a full disk keeps nobody from running."""

from __future__ import annotations

import errno
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from numba import int64

from dataflow.compiled import entries
from dataflow.compiled.cache_folder import open_cache_folder
from dataflow.compiled.entries import Damaged, Entry
from dataflow.compiled.kernel import kernel

ROOT = os.geteuid() == 0
STEP = 7


def shift(x: int) -> int:
    return x + STEP


def double(x: int) -> int:
    return x * 2


def run(function: Callable[[int], int] = shift) -> tuple[int, int]:
    """What a process that starts now would do: (compiled, loaded). The answer must be right."""
    compiled: Any = kernel("int64(int64)")(function)
    assert compiled(5) == function(5)
    return sum(compiled.stats.cache_misses.values()), sum(compiled.stats.cache_hits.values())


def the_file(cache: Path, of: str = "shift") -> Path:
    (path,) = (path for path in cache.iterdir() if f".{of}-" in path.name)
    return path


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def cut_to_the_head(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[random.Random(14).randrange(len(data))] ^= 4
    path.write_bytes(data)


def somebody_elses_words(path: Path) -> None:
    path.write_text("the disk was full, so here is a page of a novel\n" * 50)


def another_function(path: Path) -> None:
    path.write_bytes(the_file(path.parent, "double").read_bytes())


def link(path: Path) -> None:
    path.rename(path.with_suffix(".good"))
    path.symlink_to(path.with_suffix(".good"))


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def open_to_all(path: Path) -> None:
    path.chmod(0o666)


def give_away(path: Path) -> None:
    os.chown(path, 65534, -1)


DAMAGES = [cut, cut_to_the_head, empty, lengthen, flip, somebody_elses_words, another_function, link, fifo, open_to_all]


@pytest.mark.parametrize("damage", [*DAMAGES, *([give_away] if ROOT else [])])
def test_what_cannot_be_used_is_discarded_and_compiled_again(
    damage: Callable[[Path], None], cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run() == (1, 0) and run() == (0, 1) and run(double) == (1, 0)
    damage(the_file(cache))
    assert capfd.readouterr().err == ""
    assert run() == (1, 0)
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and "discarded, and tests.compiled.test_damage.shift compiled again" in said
    assert run() == (0, 1)
    damage(the_file(cache))
    assert run() == (1, 0)
    assert capfd.readouterr().err == ""  # it has been said


def test_every_byte_counts(cache: Path) -> None:
    entry = Entry("the key", "label")
    with open_cache_folder() as place:
        assert place is not None
        entry.write(place, b"content")
        path = cache / entry.name
        whole = path.read_bytes()
        for i in range(len(whole)):
            for wrong in (whole[:i], whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :]):
                path.write_bytes(wrong)
                with pytest.raises(Damaged):
                    entry.read(place)
        path.write_bytes(whole)
        assert entry.read(place) == b"content"
        other = Entry("another key", "label")
        path.rename(cache / other.name)
        with pytest.raises(Damaged):
            other.read(place)


def test_code_that_does_not_load_any_more_is_compiled_again(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run()
    compiled: Any = kernel()(shift)
    entry = compiled._cache.entry(int64(int64))
    with open_cache_folder() as place:
        assert place is not None and entry.read(place) is not None
        entry.write(place, pickle.dumps(("no", "such", "thing")))
    assert run() == (1, 0)
    assert "cannot be loaded" in capfd.readouterr().err
    assert run() == (0, 1)


def test_a_full_disk_keeps_nobody_from_running(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Full:
        """A file that has room for ten bytes more."""

        def __init__(self, file: BinaryIO) -> None:
            self._file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def write(self, data: bytes) -> int:
            self._file.write(data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full(fd: int, mode: str) -> Any:
        return Full(open(fd, mode)) if mode == "wb" else open(fd, mode)

    run()
    cut(the_file(cache))
    monkeypatch.setattr(entries, "open", full, raising=False)
    assert run() == (1, 0) and run() == (1, 0) and run(double) == (1, 0)
    assert list(cache.iterdir()) == []  # neither what was damaged nor what was begun
    said = capfd.readouterr().err.partition("compiled again\n")[2]
    assert said.count("\n") == 1
    assert "cannot be kept in" in said and "No space left on device): the next run compiles it again" in said
    monkeypatch.undo()


def test_what_killed_processes_left_goes_with_the_next_who_writes(cache: Path) -> None:
    run()
    name = the_file(cache).name
    the_file(cache).unlink()
    (cache / f"{name}.0123.tmp").write_bytes(b"half")
    (cache / f"{name}.lock").write_bytes(b"")
    assert run() == (1, 0)
    assert [path.name for path in cache.iterdir()] == [name]
