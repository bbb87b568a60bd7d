"""From where snapshots are kept, as users say it, to a storage."""

from __future__ import annotations

import os

from dataflow.recovery.local import LocalStorage
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.storage import Storage, check_address


def open_storage(where: str | os.PathLike[str] | Storage) -> Storage:
    """A folder, `memory://NAME`, or a place that an object store has, such as `s3://bucket/prefix`. A storage is given
    back as it is. Nothing is read or written yet."""
    if not isinstance(where, str | os.PathLike):
        return where
    text = check_address(where)
    scheme, separator, rest = text.partition("://")
    if not separator or isinstance(where, os.PathLike):
        return LocalStorage(os.path.expanduser(text))
    if scheme == "file":
        return LocalStorage(rest)
    if scheme == "memory":
        return MemoryStorage.named(rest)
    from dataflow.recovery.object_store import open_object_store

    return open_object_store(text)


def is_in_this_process(where: str | os.PathLike[str] | Storage) -> bool:
    """Whether only this process can see what is stored there."""
    return not isinstance(where, str | os.PathLike) or os.fspath(where).startswith("memory://")
