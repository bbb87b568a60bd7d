"""A storage for simulations: it takes its time, fails, and tears what was being written when everybody crashed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from random import Random

import trio

from dataflow.recovery.storage import AlreadyThere, Blob, NotThere, StorageError


async def dawdle(chance: Random) -> None:
    """Takes some time: a few turns of the others, or some of the virtual clock, which passes when nobody has a turn."""
    if chance.random() < 0.1:
        await trio.sleep(chance.random())
    for _ in range(chance.choice((0, 0, 0, 0, 1, 3, 10, 40))):
        await trio.lowlevel.checkpoint()


class Disk:
    """Blobs by name. What `put` has acknowledged is durable; of the rest, anything may be found after a crash."""

    title = "a simulated disk"

    syncs = True  # False: it acknowledges what is not durable yet

    def __init__(self, chance: Random, failing: float = 0.0) -> None:
        self.blobs: dict[str, bytes] = {}
        self.failing = failing  # how often a call fails
        self.refused_reads = 0
        self.claims_failed = 0
        self.torn: list[str] = []  # what was under way when it crashed
        self.noticed: Callable[[str], None] = lambda event: None  # told what happens; may raise, as a crash does
        self.acknowledged: list[int] = []  # the times of snapshots that are known to be durable
        # By dataflow: the greatest time of a snapshot that is durable, whether anybody knows or not; and by number of
        # a manifest that was durable once, the tokens that it names.
        self.latest: dict[str, int] = {}
        self.tokens: dict[str, dict[int, set[str]]] = {}
        self._chance = chance
        self._under_way: list[tuple[str, bytes]] = []

    async def put(self, name: str, data: Blob, *, if_absent: bool = False) -> None:
        """Stores a blob. A failure may come before it is there, or after."""
        blob = bytes(data)
        writing, what = (name, blob), "a manifest" if "manifest" in name else "a file"
        self._under_way.append(writing)
        if self.syncs:
            await dawdle(self._chance)
        else:
            await trio.lowlevel.checkpoint()
        self.noticed(f"putting {what}")
        if if_absent and name in self.blobs:
            self._under_way.remove(writing)
            raise AlreadyThere(f"{name} is there already")
        failed = self._chance.random() < self.failing
        time = _snapshot_time(blob) if "manifest" in name else None
        if not (failed and self._chance.random() < 0.7):
            self._store(name, blob)
        if self.syncs:
            self._under_way.remove(writing)
        if failed:
            self.claims_failed += time is None and "manifest" in name
            raise StorageError(f"{name} could not be written, or perhaps it was")
        if time is not None:
            self.acknowledged.append(time)
        self.noticed(f"put {what}")

    async def get(self, name: str) -> bytes:
        """A blob."""
        await self._read()
        if name not in self.blobs:
            raise NotThere(f"there is no {name}")
        return self.blobs[name]

    async def names(self, prefix: str) -> list[str]:
        """Names, sorted."""
        await self._read()
        return sorted(name for name in self.blobs if name.startswith(prefix))

    async def delete(self, name: str) -> None:
        """Deletes a blob, if there is one."""
        await dawdle(self._chance)
        self.noticed("deleting")
        if self._chance.random() < self.failing:
            raise StorageError(f"{name} could not be deleted")
        self.blobs.pop(name, None)

    async def _read(self) -> None:
        await dawdle(self._chance)
        self.noticed("reading")
        if self._chance.random() < self.failing / 10:
            self.refused_reads += 1
            raise StorageError("nothing can be read just now")

    def crash(self) -> None:
        """Everybody who used it is gone: what was being written is there, or not, or a part of it is, unless there was
        something of that name before, or nothing at all: with a torn claim alone, people must say how to go on."""
        self.torn += self.under_way
        for name, blob in self._under_way:
            how = self._chance.randrange(3)
            if how == 0 and not self.syncs:
                self.blobs.pop(name, None)
            elif how == 1 and not name.endswith("manifest-0000000001") and (name not in self.blobs or not self.syncs):
                self.blobs[name] = blob[: self._chance.randrange(len(blob) + 1)]
            elif how == 2 and name not in self.blobs:
                self._store(name, blob)
        self._under_way.clear()

    @property
    def under_way(self) -> list[str]:
        """What is being written: "a manifest" or "a file" for each."""
        return ["a manifest" if "manifest" in name else "a file" for name, _ in self._under_way]

    def _store(self, name: str, blob: bytes) -> None:
        self.blobs[name] = blob
        if "manifest" in name:
            flow, _, number = name.partition("/manifest-")
            self.latest[flow] = max(self.latest.get(flow, 0), _snapshot_time(blob) or 0)
            self.tokens.setdefault(flow, {})[int(number)] = _tokens(blob)


def _snapshot_time(manifest: bytes) -> int | None:
    """The time of a snapshot; None if it is no more than the claim of a run."""
    plain = json.loads(manifest.partition(b"\n")[0])
    return None if plain["number"] == plain["incarnation"] else int(plain["time"])


def _tokens(manifest: bytes) -> set[str]:
    """The tokens in a manifest: what is in angle brackets."""
    plain = json.loads(manifest.partition(b"\n")[0])
    encoded = [base64.b64decode(token) for by_worker in plain["tokens"].values() for token in by_worker.values()]
    return {token.decode() for each in encoded for token in re.findall(rb"<[^>]*>", each)}
