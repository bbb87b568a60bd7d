"""A folder as a storage: crashes leave no halves, others are kept out, troubles are told."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from dataflow.recovery import local
from dataflow.recovery.local import LocalStorage
from dataflow.recovery.opening import is_in_this_process, open_storage
from dataflow.recovery.storage import NotThere, StorageError


def put(folder: Path, name: str = "flow/a", data: bytes = b"data", if_absent: bool = False) -> None:
    async def act() -> None:
        await LocalStorage(folder).put(name, data, if_absent=if_absent)

    trio.run(act)


def get(folder: Path, name: str = "flow/a") -> bytes:
    async def act() -> bytes:
        return await LocalStorage(folder).get(name)

    return trio.run(act)


def names(folder: Path, prefix: str = "") -> list[str]:
    async def act() -> list[str]:
        return await LocalStorage(folder).names(prefix)

    return trio.run(act)


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("if_absent", [False, True])
def test_a_crash_at_any_call_leaves_all_or_nothing(
    if_absent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call to the system in turn is the last one."""
    calls = ("open", "fsync", "rename", "link", "unlink")
    originals = {name: getattr(os, name) for name in calls}
    for last in range(40):
        folder = tmp_path / str(last)
        put(folder, "flow/other")
        left = last

        def counted(name: str) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal left
                if left <= 0:  # nothing is cleaned up after the end of a process
                    raise Crash
                left -= 1
                return originals[name](*args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            for name in calls:
                patch.setattr(local.os, name, counted(name))
            try:
                put(folder, if_absent=if_absent)
            except Crash:
                finished = False
            else:
                finished = True
        assert set(names(folder)) - {"flow/a"} == {"flow/other"}
        if "flow/a" in names(folder):
            assert get(folder) == b"data"
        else:
            assert not finished
        if finished:
            break
    assert finished and last > 5


def test_files_are_synced_before_they_get_their_name_and_folders_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of calls is the whole of durability; there is no other way to see it than to look."""
    seen: list[str] = []

    def watch(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            folder = name == "fsync" and os.path.isdir(f"/proc/self/fd/{args[0]}")
            seen.append(f"{name} of the folder" if folder else name)
            return original(*args, **kwargs)

        return call

    put(tmp_path / "state")
    for name in ("fsync", "rename", "link"):
        monkeypatch.setattr(local.os, name, watch(name, getattr(os, name)))
    put(tmp_path / "state", "flow/b")
    put(tmp_path / "state", "flow/c", if_absent=True)
    assert seen == ["fsync", "rename", "fsync of the folder", "fsync", "link", "fsync of the folder"]


def test_what_a_crash_has_left_is_not_seen_and_goes_in_the_end(tmp_path: Path) -> None:
    put(tmp_path)
    young, old = tmp_path / "flow" / ".put-1-ab", tmp_path / "flow" / ".put-2-cd"
    young.write_bytes(b"half")
    old.write_bytes(b"half")
    os.utime(old, (0, 0))
    (tmp_path / "flow" / ".keep").write_bytes(b"somebody's")
    os.utime(tmp_path / "flow" / ".keep", (0, 0))
    assert names(tmp_path) == ["flow/a"]
    assert young.exists() and not old.exists() and (tmp_path / "flow" / ".keep").exists()


def test_what_is_written_is_ours_alone(tmp_path: Path) -> None:
    put(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "state" / "flow" / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
@pytest.mark.parametrize("inner", ["", "flow"])
def test_a_folder_that_others_may_write_to_is_refused(mode: int, inner: str, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    put(folder)
    (folder / inner).chmod(mode)
    with pytest.raises(StorageError, match=f"other users may write to it .mode {mode:o}.: chmod -R go-w it"):
        put(folder, "flow/b")
    with pytest.raises(StorageError, match="other users may write"):
        get(folder)
    if not inner:
        with pytest.raises(StorageError, match="other users may write"):
            names(folder)


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path)
    monkeypatch.setattr(local.os, "geteuid", lambda: 12345)
    if tmp_path.stat().st_uid == 0:
        assert get(tmp_path) == b"data"  # root's folders are as good as one's own
        tmp_path_owner = os.stat_result((0o40700, 0, 0, 0, 777, 0, 0, 0, 0, 0))
        monkeypatch.setattr(local.os, "fstat", lambda fd: tmp_path_owner)
    with pytest.raises(StorageError, match=r"it belongs to user .* name a folder of your own"):
        get(tmp_path)


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    (secret / "a").write_bytes(b"secret")
    folder = tmp_path / "state"
    put(folder)
    (folder / "flow" / "link").symlink_to(secret / "a")
    (folder / "other").symlink_to(secret)
    for act in (lambda: get(folder, "flow/link"), lambda: put(folder, "other/b")):
        with pytest.raises(StorageError):
            act()
    with pytest.raises(NotThere):
        get(folder, "other/a")
    assert names(folder) == ["flow/a"]
    put(folder, "flow/link")  # takes the link's place
    assert (secret / "a").read_bytes() == b"secret"


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    put(tmp_path, "flow/before")
    monkeypatch.setattr(local.os, "fsync", full)
    with pytest.raises(StorageError, match=f"{tmp_path}: No space left on device"):
        put(tmp_path)
    assert os.listdir(tmp_path / "flow") == ["before"]


def test_a_file_system_without_links_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(local.os, "link", refuse)
    with pytest.raises(StorageError, match="a file system that has hard links"):
        put(tmp_path, if_absent=True)


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder")
    with pytest.raises(StorageError):
        put(tmp_path / "state")
    assert names(tmp_path / "nowhere") == []


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for where in ("state", tmp_path / "state", f"file://{tmp_path}/state", "./state/"):
        storage = open_storage(where)
        assert isinstance(storage, LocalStorage) and storage.path == tmp_path / "state"
        assert not is_in_this_process(where)
    memory = open_storage("memory://tests-of-addresses")
    assert memory is open_storage("memory://tests-of-addresses") and memory is open_storage(memory)
    assert memory is not open_storage("memory://others") and memory.title == "memory://tests-of-addresses"
    assert is_in_this_process(memory) and is_in_this_process("memory://x")
    with pytest.raises(ValueError, match="snapshots cannot be kept at ftp://x: name a folder, or an address"):
        open_storage("ftp://user:secret@x")
