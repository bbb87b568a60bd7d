"""A storage in S3, or in another object store: Google's, Azure's, and whatever speaks S3.

Through `obstore` (`pip install 'megaphone-dataflow[s3]'`), as `dataflow.clients.buckets` opens it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from dataflow.clients.buckets import SCHEMES, BucketError, explain, is_address, open_store, title_of
from dataflow.recovery.storage import AlreadyThere, Blob, NotThere, StorageError, Threaded, check_name

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

_WHOLE = 128 << 20  # bytes up to which a blob is put in one request


class ObjectStorage(Threaded):
    """Named blobs in an object store. Calls go to threads, and cannot be cancelled before they have ended; the library
    tries again for up to a minute, and gives up after that."""

    def __init__(self, store: ObjectStore, title: str) -> None:
        self.title = title
        self._store = store

    async def put(self, name: str, data: Blob, *, if_absent: bool = False) -> None:
        """Stores a blob. One request, unless it is very large."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        check_name(name)

        def put() -> None:
            if if_absent:
                obstore.put(self._store, name, data, mode="create", use_multipart=False)
            else:
                obstore.put(self._store, name, data, use_multipart=len(data) > _WHOLE)

        try:
            await self._in_thread("put", put, AlreadyExistsError)
        except AlreadyExistsError:
            raise AlreadyThere(f"{name} is in {self.title} already") from None

    async def get(self, name: str) -> bytes:
        """A blob; NotThere if there is none."""
        import obstore
        from obstore.exceptions import NotFoundError

        check_name(name)
        try:
            return await self._in_thread(
                "get", lambda: obstore.get(self._store, name).bytes().to_bytes(), NotFoundError, FileNotFoundError
            )
        except (NotFoundError, FileNotFoundError):
            raise NotThere(f"there is no {name} in {self.title}") from None

    async def names(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`, sorted. Lists the folder that the prefix leads to."""
        import obstore

        top, _, _ = prefix.rpartition("/")  # stores list whole folders only

        def names() -> list[str]:
            return [blob["path"] for some in obstore.list(self._store, top or None) for blob in some]

        found = await self._in_thread("list", names)  # a folder that is not there has no names
        return sorted(name for name in found if name.startswith(prefix))

    async def delete(self, name: str) -> None:
        """Deletes a blob, if there is one."""
        import obstore
        from obstore.exceptions import NotFoundError

        check_name(name)
        try:
            await self._in_thread("delete", lambda: obstore.delete(self._store, name), NotFoundError, FileNotFoundError)
        except (NotFoundError, FileNotFoundError):
            return

    async def _in_thread(self, what: str, call: Callable[[], T], *expected: type[Exception]) -> T:
        from obstore.exceptions import BaseError

        try:
            return await trio.to_thread.run_sync(call)
        except expected:
            raise
        except (BaseError, OSError, ValueError) as error:
            raise StorageError(f"{self.title} cannot {what}: {explain(error)}") from None


def open_object_store(address: str, retries: int = 5) -> ObjectStorage:
    """The storage at an address such as `s3://bucket/prefix`."""
    if not is_address(address):
        raise ValueError(
            f"snapshots cannot be kept at {title_of(address)}: name a folder, or an address that begins with "
            f"{', '.join(f'{known}://' for known in SCHEMES)} or memory://"
        )
    try:
        return ObjectStorage(open_store(address, retries), title_of(address))
    except BucketError as error:
        raise StorageError(str(error)) from None
