"""Streams of Redis and Valkey. A partition is a stream, and a position is the id of an entry."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

import trio

from dataflow.clients.extras import names_of, require_extra, require_number
from dataflow.clients.redis import connect, without_password
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.values import Value

if TYPE_CHECKING:
    from redis import Redis

D = TypeVar("D")
_WAIT = 100  # milliseconds for which a thread waits for more: as long may a worker's end take


class RedisRecord(NamedTuple):
    """An entry of a stream."""

    id: str  # milliseconds since 1970, a dash, a number
    fields: dict[bytes, bytes]


class _Redis(Partitions[D]):
    def __init__(
        self,
        url: str,
        streams: Sequence[str],
        decode: Callable[[RedisRecord], D],
        batch: int,
        follow: bool,
        trim: bool,
        settings: Mapping[str, object],
    ) -> None:
        self.follow = follow
        self._url = url
        self._streams = list(streams)
        self._decode = decode
        self._batch = batch
        self._trim = trim
        self._settings = dict(settings)

    def __repr__(self) -> str:
        return f"<redis streams {', '.join(self._streams)} at {without_password(self._url)}>"

    async def partitions(self) -> list[str]:
        """The streams."""
        return self._streams

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The entries behind an id."""
        if position is not None and not (isinstance(position, str) and re.fullmatch(r"\d+-\d+", position)):
            raise SourceError(f"{partition}: {position!r} is no position in a stream: an entry's id was expected")
        alone = trio.CapacityLimiter(1)  # so that readers do not wait for each other's turn in a thread
        client = connect(self._url, self._settings)
        try:
            behind, last = await trio.to_thread.run_sync(self._begin, client, partition, position, limiter=alone)
            while self.follow or _order(behind) < _order(last):
                entries = await trio.to_thread.run_sync(self._next, client, partition, behind, limiter=alone)
                if entries:
                    behind = entries[-1].id
                    yield behind, None, [self._decode(entry) for entry in entries]
                elif not self.follow:
                    return  # the last ones were deleted
        finally:
            client.close()

    def _begin(self, client: Redis, stream: str, position: str | None) -> tuple[str, str]:
        """Where to read on, and the last entry that there is."""
        if position is not None and not self._asked(lambda: client.xrange(stream, position, position)):
            # We never delete the entry at a position, so that its absence shows that others deleted more than that.
            raise SourceError(
                f"{stream}: its entry {position} is gone, and with it perhaps others that were not read: the stream "
                "was trimmed or replaced. Trim it with trim=True, which keeps what is needed, or start afresh"
            )
        last = self._asked(lambda: client.xrevrange(stream, count=1))
        return position or "0-0", last[0][0].decode() if last else "0-0"

    def _next(self, client: Redis, stream: str, behind: str) -> list[RedisRecord]:
        found = self._asked(lambda: client.xread({stream: behind}, count=self._batch, block=_WAIT))
        streams = found.values() if isinstance(found, dict) else [entries for _, entries in found or ()]
        return [RedisRecord(key.decode(), fields) for entries in streams for key, fields in _flat(entries)]

    def _asked(self, ask: Callable[[], Value]) -> Value:
        from redis.exceptions import RedisError

        try:
            return ask()
        except RedisError as error:
            raise SourceError(f"{self!r} cannot be read: {error}") from None

    async def acknowledge(self, partition: str, position: object) -> None:
        """Trims what will not be read again, if that was asked for; all but the entry at the position."""
        if self._trim:
            await trio.to_thread.run_sync(self._cut, partition, str(position), limiter=trio.CapacityLimiter(1))

    def _cut(self, stream: str, position: str) -> None:
        client = connect(self._url, self._settings)
        try:
            self._asked(lambda: client.xtrim(stream, minid=position, approximate=False))
        finally:
            client.close()


def _flat(entries: Value) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The library gives a stream's entries in a list, or (in the newer protocol) in a list of lists."""
    return [entry for part in entries for entry in part] if entries and isinstance(entries[0], list) else list(entries)


def _order(identity: str) -> tuple[int, int]:
    moment, _, number = identity.partition("-")
    return int(moment), int(number)


def _as_it_is(record: RedisRecord) -> RedisRecord:
    return record


@overload
def redis(
    url: str,
    streams: str | Sequence[str],
    *,
    batch: int = ...,
    follow: bool = ...,
    trim: bool = ...,
    settings: Mapping[str, object] | None = ...,
) -> Partitions[RedisRecord]: ...


@overload
def redis(
    url: str,
    streams: str | Sequence[str],
    *,
    decode: Callable[[RedisRecord], D],
    batch: int = ...,
    follow: bool = ...,
    trim: bool = ...,
    settings: Mapping[str, object] | None = ...,
) -> Partitions[D]: ...


def redis(
    url: str,
    streams: str | Sequence[str],
    *,
    decode: Callable[[RedisRecord], D] | None = None,
    batch: int = 1000,
    follow: bool = True,
    trim: bool = False,
    settings: Mapping[str, object] | None = None,
) -> Partitions[D] | Partitions[RedisRecord]:
    """The entries of streams of Redis or Valkey, at most `batch` at each time; `decode` makes a record of each.

    `url`: where the server is ("redis://host:6379/0", "rediss://..." with TLS, "unix:///path"). Without `follow`, up to
    what there is at the start. Ids of entries are kept in our snapshots, and the server keeps no group of ours. `trim`:
    entries are deleted when they are in a snapshot. `settings` are those of `redis.Redis`.
    """
    require_extra("redis", "redis", "sources.redis")
    names = names_of("sources.redis", "streams", streams)
    require_number("sources.redis", "batch", batch, 1, whole=True)
    known = settings or {}
    if decode is None:
        return _Redis(url, names, _as_it_is, batch, follow, trim, known)
    return _Redis(url, names, decode, batch, follow, trim, known)
