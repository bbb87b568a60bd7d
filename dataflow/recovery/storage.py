"""Where snapshots are kept: named blobs that are put once and never changed. An interface, and its errors.

Names are relative paths of plain characters, such as `dataflow-0/manifest-00000012`. Whatever is put is durable when
`put` returns. No message of an error has credentials in it.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from typing import Protocol, TypeAlias

from dataflow.errors import DataflowError

Blob: TypeAlias = bytes | bytearray | memoryview

_NAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*")


class StorageError(DataflowError):
    """The storage cannot do what is asked of it now: it is full, cannot be reached, or refuses."""


class AlreadyThere(StorageError):
    """Something of that name is there already, and `if_absent` was asked for."""


class NotThere(StorageError):
    """There is nothing of that name."""


class Threaded(ABC):
    """A base of storages that wait for the world outside. What uses such a one may use threads as well, to hash what it
    puts; beside others (in simulations) it must not."""

    @abstractmethod
    async def get(self, name: str) -> bytes:
        """See `Storage`."""

    async def get_large(self, name: str) -> memoryview:
        """The same of a blob that may be large."""
        return memoryview(await self.get(name))


class Storage(Protocol):
    """Named blobs. Every method may raise StorageError."""

    title: str  # what messages call it; no credentials

    async def put(self, name: str, data: Blob, *, if_absent: bool = False) -> None:
        """Stores a blob, whole or not at all, durable when this returns. With `if_absent`, AlreadyThere if there is one
        of that name, and of several who try at once exactly one succeeds."""

    async def get(self, name: str) -> bytes:
        """A blob; NotThere if there is none."""

    async def names(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`, sorted."""

    async def delete(self, name: str) -> None:
        """Deletes a blob, if there is one."""


def check_name(name: str) -> str:
    """The name, if it can be that of a blob; ValueError otherwise. For those who write storages."""
    if not _NAME.fullmatch(name) or len(name) > 900 or max(map(len, name.split("/"))) > 240:
        raise ValueError(f"{name!r} cannot be the name of a blob: plain characters and slashes, no leading dots")
    return name


def check_address(where: str | os.PathLike[str]) -> str:
    """Where snapshots are to be kept, as text; ValueError if a slash is missing. A folder `s3:` would be made."""
    text = os.fspath(where)
    if not text:
        raise ValueError("recovery needs a place for snapshots: a folder, or s3://bucket/prefix")
    scheme, colon, rest = text.partition(":")
    if colon and len(scheme) > 1 and scheme.isalnum() and not rest.startswith("//") and isinstance(where, str):
        raise ValueError(
            f"{scheme}: is no folder, and no address either: write {scheme}://..., or ./{scheme}:... for a folder"
        )
    return text
