"""A storage for simulations, in which everything that can happen happens: it delays, fails and forgets. Seeded.

Time is trio's, so on a virtual clock it costs nothing. A crash of the computer is `crash()`: puts that have not
returned have then happened, or not. With `syncs=False` it is a storage that forgets to sync: a blob whose put has
returned may be gone after a crash, or be cut off. `dataflow.recovery` must survive the former, and tests must catch the
latter.
"""

from __future__ import annotations

import random

import trio

from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.storage import Blob, StorageError


class Faulty(MemoryStorage):
    """Blobs in memory, behind an unreliable way to them.

    `delay`: the most seconds that a call takes. `failures`: the share of calls that raise StorageError; half of the
    puts and deletes that fail have had their effect. Failing may be switched on and off (`failures` is an attribute).
    """

    def __init__(
        self,
        seed: int,
        *,
        delay: float = 0.0,
        failures: float = 0.0,
        syncs: bool = True,
        title: str = "faulty storage",
    ) -> None:
        super().__init__(title)
        self.delay = delay
        self.failures = failures
        self.syncs = syncs
        self.calls = 0
        self._random = random.Random(f"faulty {seed}")
        self._under_way: dict[int, tuple[str, bytes, bool]] = {}  # puts that have not had their effect
        self._unsynced: dict[str, bytes | None] = {}  # what a crash may cut or take back: what was there before

    async def put(self, name: str, data: Blob, *, if_absent: bool = False) -> None:
        """Stores a blob, after a while, if nothing happens."""
        call, fails, early = await self._called()
        self._under_way[call] = (name, bytes(data), if_absent)
        try:
            await self._wait()
        finally:
            started = self._under_way.pop(call, None)
        if started is None:
            raise StorageError(f"{self.title} crashed")
        if fails and early:
            raise self._failure("put", name)
        before = self.blobs.get(name)
        await super().put(name, data, if_absent=if_absent)
        if not self.syncs:
            self._unsynced.setdefault(name, before)
        if fails:
            raise self._failure("put", name)

    async def get(self, name: str) -> bytes:
        """A blob, after a while."""
        _, fails, _ = await self._called()
        await self._wait()
        if fails:
            raise self._failure("get", name)
        return await super().get(name)

    async def names(self, prefix: str) -> list[str]:
        """Names, after a while."""
        _, fails, _ = await self._called()
        await self._wait()
        if fails:
            raise self._failure("list", prefix)
        return await super().names(prefix)

    async def delete(self, name: str) -> None:
        """Deletes a blob, after a while."""
        _, fails, early = await self._called()
        await self._wait()
        if fails and early:
            raise self._failure("delete", name)
        await super().delete(name)
        if fails:
            raise self._failure("delete", name)

    def crash(self) -> None:
        """The computer crashes, and what was durable is there when it is up again. Calls that wait must be cancelled by
        whoever simulates the crash: their callers are no more."""
        for name, data, if_absent in self._under_way.values():
            if self._random.random() < 0.5 and not (if_absent and name in self.blobs):
                self.blobs[name] = data
        self._under_way.clear()
        for name, before in self._unsynced.items():
            self._forget(name, before)
        self._unsynced.clear()

    def damage(self, name: str) -> None:
        """Somebody alters a blob: a bit of it, its length, or all of it."""
        data = bytearray(self.blobs[name])
        how = self._random.randrange(3)
        if how == 0 and data:
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
            self.blobs[name] = bytes(data)
        elif how == 1 and data:
            self.blobs[name] = bytes(data[: self._random.randrange(len(data))])
        else:
            del self.blobs[name]

    def _forget(self, name: str, before: bytes | None) -> None:
        """What a crash does to a blob that was not synced."""
        there = self.blobs.get(name)
        how = self._random.randrange(3)
        if how == 0 and there is not None:
            self.blobs[name] = there[: self._random.randrange(len(there) + 1)]
        elif how == 1:
            self.blobs.pop(name, None)
            if before is not None:
                self.blobs[name] = before

    async def _called(self) -> tuple[int, bool, bool]:
        """A call begins: its number, whether it will fail, and whether before its effect."""
        await trio.lowlevel.checkpoint()
        self.calls += 1
        return self.calls, self._random.random() < self.failures, self._random.random() < 0.5

    async def _wait(self) -> None:
        if self.delay:
            await trio.sleep(self._random.random() * self.delay)

    def _failure(self, what: str, name: str) -> StorageError:
        return StorageError(f"{self.title} did not answer: {what} {name}")
