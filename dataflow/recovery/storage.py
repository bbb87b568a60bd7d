"""Where snapshots are kept: named blobs that are put once and never changed. An interface, and its errors.

Names are relative paths of plain characters, such as `dataflow-0/manifest-00000012`. Whatever is put is durable when
`put` returns. No message of an error has credentials in it.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from dataflow.errors import DataflowError

Blob: TypeAlias = bytes | bytearray | memoryview


class StorageError(DataflowError):
    """The storage cannot do what is asked of it now: it is full, cannot be reached, or refuses."""


class AlreadyThere(StorageError):
    """Something of that name is there already, and `if_absent` was asked for."""


class NotThere(StorageError):
    """There is nothing of that name."""


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
