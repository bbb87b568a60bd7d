"""A storage in S3, or in another object store: Google's, Azure's, and whatever speaks S3.

Through `obstore` (`pip install 'megaphone-dataflow[s3]'`). Credentials, region and endpoint come from the environment,
as other tools have them (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, ...), never
from the address. What the library and the server say when they refuse may have keys and signatures in it: no message of
ours repeats it, beyond the kind of the trouble and the number of the status.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import trio

from dataflow.recovery.storage import AlreadyThere, Blob, NotThere, StorageError, Threaded, check_name

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

SCHEMES = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss")
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
            raise StorageError(f"{self.title} cannot {what}: {_explain(error)}") from None


def open_object_store(address: str, retries: int = 5) -> ObjectStorage:
    """The storage at an address such as `s3://bucket/prefix`."""
    scheme, _, rest = address.partition("://")
    place, _, query = rest.partition("?")
    title = f"{scheme}://{place.rpartition('@')[2]}"
    if scheme not in SCHEMES:
        raise ValueError(
            f"snapshots cannot be kept at {title}: name a folder, or an address that begins with "
            f"{', '.join(f'{known}://' for known in SCHEMES)} or memory://"
        )
    if not place.strip("/"):
        raise ValueError(f"name a bucket, such as {scheme}://bucket/prefix")
    if "@" in place or query:
        raise ValueError(
            f"the address {title} has more in it than a bucket and a prefix: credentials belong into the environment "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), where nobody prints them"
        )
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ModuleNotFoundError:
        raise StorageError(f"{title} needs obstore: pip install 'megaphone-dataflow[s3]'") from None
    insecure = _endpoint().startswith("http://")  # whoever says http has decided so
    try:
        store = from_url(
            address,
            client_options={"allow_http": insecure, "connect_timeout": "5s", "timeout": "120s"},
            retry_config={"max_retries": retries, "retry_timeout": timedelta(minutes=1)},
        )
    except (BaseError, ValueError) as error:
        raise StorageError(f"{title} cannot be opened: {_explain(error)}") from None
    return ObjectStorage(store, title)


def _endpoint() -> str:
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return next((os.environ[name] for name in names if name in os.environ), "")


def _explain(error: Exception) -> str:
    """What went wrong, without a word of the server's."""
    from obstore import exceptions

    text = str(error)
    status = re.search(r"status:? (?:code )?([1-5][0-9]{2})", text)
    if isinstance(error, exceptions.UnauthenticatedError | exceptions.PermissionDeniedError) or (
        status is not None and status[1] in ("401", "403")
    ):
        why = "it refuses the credentials in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION)"
    elif isinstance(error, exceptions.NotFoundError | FileNotFoundError) or (status is not None and status[1] == "404"):
        why = "there is no such bucket"
    elif isinstance(error, exceptions.NotSupportedError):
        why = "it does not support what snapshots need (put if absent)"
    elif "error sending request" in text or "connect" in text:
        why = "it cannot be reached; is the endpoint right (AWS_ENDPOINT_URL)?"
    elif "timed out" in text or "timeout" in text:
        why = "it did not answer in time"
    else:
        why = f"{type(error).__name__}"
    return f"{why} (status {status[1]})" if status else why
