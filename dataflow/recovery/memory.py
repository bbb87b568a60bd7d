"""A storage in the memory of this process: for tests, and to see how recovery works. No threads, no waiting.

`memory://NAME` is the same storage wherever it is opened in this process. It ends with the process, and other processes
have others: workers in processes of their own cannot use it.
"""

from __future__ import annotations

import trio

from dataflow.recovery.storage import AlreadyThere, Blob, NotThere, check_name

_STORAGES: dict[str, MemoryStorage] = {}


class MemoryStorage:
    """Named blobs in a dictionary. Each call costs a copy, and lets other tasks run first."""

    def __init__(self, title: str = "memory://") -> None:
        self.title = title
        self.blobs: dict[str, bytes] = {}

    @classmethod
    def named(cls, name: str) -> MemoryStorage:
        """The storage of that name, empty at first."""
        if name not in _STORAGES:
            _STORAGES[name] = cls(f"memory://{name}")
        return _STORAGES[name]

    async def put(self, name: str, data: Blob, *, if_absent: bool = False) -> None:
        """Stores a copy of a blob."""
        check_name(name)
        await trio.lowlevel.checkpoint()
        if if_absent and name in self.blobs:
            raise AlreadyThere(f"{name} is in {self.title} already")
        self.blobs[name] = bytes(data)

    async def get(self, name: str) -> bytes:
        """A blob; NotThere if there is none."""
        check_name(name)
        await trio.lowlevel.checkpoint()
        if name not in self.blobs:
            raise NotThere(f"there is no {name} in {self.title}")
        return self.blobs[name]

    async def names(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`, sorted. O(all blobs)."""
        await trio.lowlevel.checkpoint()
        return sorted(name for name in self.blobs if name.startswith(prefix))

    async def delete(self, name: str) -> None:
        """Deletes a blob, if there is one."""
        check_name(name)
        await trio.lowlevel.checkpoint()
        self.blobs.pop(name, None)
