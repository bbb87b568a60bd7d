"""One suite for every storage: what `dataflow.recovery.storage.Storage` promises."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from dataflow.recovery.faulty import Faulty
from dataflow.recovery.local import LocalStorage
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.object_store import open_object_store
from dataflow.recovery.storage import AlreadyThere, NotThere, Storage

Make = Callable[[], Storage]


@pytest.fixture(params=["memory", "local", "faulty", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """An empty storage of each kind."""
    if request.param == "memory":
        yield MemoryStorage()
    elif request.param == "local":
        yield LocalStorage(tmp_path / "some" / "state")
    elif request.param == "faulty":
        yield Faulty(3)
    else:
        bucket = request.getfixturevalue("s3_bucket")
        yield open_object_store(f"s3://{bucket}/{request.node.name.partition('[')[0]}/deep")


def run(check: Callable[[Storage], Awaitable[None]], storage: Storage) -> None:
    trio.run(check, storage)


def test_what_was_put_is_there(storage: Storage) -> None:
    async def check(storage: Storage) -> None:
        blob = random.Random(1).randbytes(3_000_000)
        await storage.put("flow/part-1", blob)
        await storage.put("flow/part-2", memoryview(bytearray(b"two")))
        await storage.put("empty", b"")
        assert await storage.get("flow/part-1") == blob
        assert await storage.get("flow/part-2") == b"two"
        assert await storage.get("empty") == b""

    run(check, storage)


def test_a_blob_can_be_replaced_and_deleted(storage: Storage) -> None:
    async def check(storage: Storage) -> None:
        await storage.put("a/b", b"one")
        await storage.put("a/b", b"another")
        assert await storage.get("a/b") == b"another"
        await storage.delete("a/b")
        await storage.delete("a/b")
        await storage.delete("nothing/there")
        with pytest.raises(NotThere, match="there is no a/b in"):
            await storage.get("a/b")

    run(check, storage)


def test_names_by_prefix(storage: Storage) -> None:
    async def check(storage: Storage) -> None:
        assert await storage.names("") == []
        assert await storage.names("flow/manifest-") == []
        names = ["flow/manifest-0000000010", "flow/manifest-0000000009", "flow/part-x.arrow", "flow=2F/a", "flo/a"]
        for name in names:
            await storage.put(name, b"x")
        assert await storage.names("") == sorted(names)
        assert await storage.names("flow/manifest-") == sorted(names[:2])
        assert await storage.names("flow/") == sorted(names[:3])
        assert await storage.names("flo") == sorted(names)
        assert await storage.names("other/") == []

    run(check, storage)


def test_of_several_who_put_if_absent_one_succeeds(storage: Storage) -> None:
    async def check(storage: Storage) -> None:
        winners: list[int] = []

        async def attempt(number: int) -> None:
            try:
                await storage.put("flow/manifest-1", b"%d" % number, if_absent=True)
            except AlreadyThere:
                return
            winners.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(attempt, number)
        assert len(winners) == 1
        assert await storage.get("flow/manifest-1") == b"%d" % winners[0]
        with pytest.raises(AlreadyThere, match=r"flow/manifest-1 is in .* already"):
            await storage.put("flow/manifest-1", b"late", if_absent=True)
        assert await storage.names("") == ["flow/manifest-1"]  # those who lost left nothing
        await storage.delete("flow/manifest-1")
        await storage.put("flow/manifest-1", b"again", if_absent=True)

    run(check, storage)


@pytest.mark.parametrize("name", ["", "/a", "a/", "../a", "a/../b", ".hidden", "a/.put-1", "a b", "a\0", "é", "a//b"])
def test_names_that_could_mean_something_else_are_refused(name: str, tmp_path: Path) -> None:
    for storage in (MemoryStorage(), LocalStorage(tmp_path)):

        async def check(storage: Storage = storage) -> None:
            with pytest.raises(ValueError, match="cannot be the name of a blob"):
                await storage.put(name, b"")
            with pytest.raises(ValueError, match="cannot be the name of a blob"):
                await storage.get(name)

        trio.run(check)
