"""Files past the system's cache: whatever the size, where the memory lies, and what the file system can do."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio

from dataflow.recovery import direct
from dataflow.recovery.backstage import run_backstage
from dataflow.recovery.local import LocalStorage

SIZES = (0, 1, 4095, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (4 << 20) + 4096, (9 << 20) + 17)


def written(path: Path, size: int, offset: int = 0) -> bytes:
    memory = direct.pages(size + offset)
    memory[:] = np.random.default_rng(size).integers(0, 256, size + offset, np.uint8)
    data = memory[offset:].data
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        direct.write_all(fd, data)
        os.fsync(fd)
        assert not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT, "the file is left as it was"
    finally:
        os.close(fd)
    return data.tobytes()


def read(path: Path, size: int | None = None) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return direct.read_all(fd, os.fstat(fd).st_size if size is None else size).tobytes()
    finally:
        os.close(fd)


@pytest.mark.parametrize("offset", [0, 1, 512])
def test_what_is_written_is_read(tmp_path: Path, offset: int) -> None:
    for size in SIZES:
        data = written(tmp_path / "file", size, offset)
        assert (tmp_path / "file").read_bytes() == data == read(tmp_path / "file")


def test_a_file_that_has_become_shorter_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = written(tmp_path / "file", (2 << 20) + 5)
    assert read(tmp_path / "file", 5 << 20) == data


@pytest.mark.parametrize("where", ["fcntl", "pwrite", "preadv"])
def test_where_it_is_not_possible_the_cache_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A file system may refuse the flag, or the disk the first transfer."""
    if where == "fcntl":
        plain = fcntl.fcntl

        def refused(fd: int, what: int, flags: int = 0) -> Any:
            if what == fcntl.F_SETFL and flags & os.O_DIRECT:
                raise OSError(errno.EINVAL, "no")
            return plain(fd, what, flags)

        monkeypatch.setattr(fcntl, "fcntl", refused)
    else:
        plain = getattr(os, where)

        def refuse(fd: int, *rest: Any) -> Any:
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT:
                raise OSError(errno.EINVAL, "no")
            return plain(fd, *rest)

        monkeypatch.setattr(os, where, refuse)
    assert written(tmp_path / "file", SIZES[-1]) == read(tmp_path / "file")


def test_blocks_that_are_taken_in_part_are_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_write, plain_read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: plain_write(fd, data[:70_000], at))
    monkeypatch.setattr(os, "preadv", lambda fd, into, at: plain_read(fd, [into[0][:70_000]], at))
    assert written(tmp_path / "file", SIZES[-1]) == read(tmp_path / "file")


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, *rest: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        written(tmp_path / "file", SIZES[-1])


def test_a_storage_writes_and_reads_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = []
    plain = os.pwrite

    def watched(fd: int, *rest: Any) -> Any:
        flags.append(bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT))
        return plain(fd, *rest)

    monkeypatch.setattr(os, "pwrite", watched)
    large = direct.pages(SIZES[-1])
    large[:] = 7

    async def main() -> None:
        storage = LocalStorage(tmp_path / "state")
        await storage.put("large", large.data)
        await storage.put("small", b"manifest")
        assert bytes(await storage.get_large("large")) == large.tobytes() == await storage.get("large")
        assert bytes(await storage.get_large("small")) == b"manifest"

    trio.run(main)
    assert flags in ([True, True, True, False, False], [False] * 4), flags  # the second where there is no such thing


def test_the_thread_behind_the_stream() -> None:
    """It gives what a call gives or raises, does one at a time in order, and waits for no cancellation."""
    order: list[int] = []

    async def main() -> None:
        assert await run_backstage(divmod, 7, 3) == (2, 1)
        with pytest.raises(ZeroDivisionError):
            await run_backstage(divmod, 7, 0)
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(run_backstage, order.append, number)
        with trio.CancelScope() as scope:
            scope.cancel()
            await run_backstage(order.append, 9)

    trio.run(main)
    assert sorted(order[:-1]) == list(range(5)) and order[-1] == 9
