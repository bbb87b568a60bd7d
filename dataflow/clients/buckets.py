"""Object stores: S3, Google's, Azure's, and whatever speaks S3. Through `obstore`.

Credentials, region and endpoint come from the environment, as other tools have them (`AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, ...), never from the address. What the library and the server
say when they refuse may have keys and signatures in it: no message of ours repeats it, beyond the kind of the trouble
and the number of the status.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from obstore.store import ObjectStore

T = TypeVar("T")

SCHEMES = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss")
_PIECE = 4 << 20  # bytes that are asked for at once


class BucketError(OSError):
    """An object store that cannot be used now."""


def is_address(path: object) -> bool:
    """Whether a path is an address in an object store."""
    return isinstance(path, str) and path.partition("://")[0] in SCHEMES and "://" in path


def title_of(address: str) -> str:
    """An address as it may be shown."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def open_store(address: str, retries: int = 5) -> ObjectStore:
    """The store at an address such as `s3://bucket/prefix`: names in it are within the prefix. ValueError if it cannot
    be an address."""
    scheme, _, rest = address.partition("://")
    place, _, query = rest.partition("?")
    title = title_of(address)
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
        raise BucketError(f"{title} needs obstore: pip install 'megaphone-dataflow[s3]'") from None
    insecure = endpoint().startswith("http://")  # whoever says http has decided so
    try:
        return from_url(
            address,
            client_options={"allow_http": insecure, "connect_timeout": "5s", "timeout": "120s"},
            retry_config={"max_retries": retries, "retry_timeout": timedelta(minutes=1)},
        )
    except (BaseError, ValueError) as error:
        raise BucketError(f"{title} cannot be opened: {explain(error)}") from None


def endpoint() -> str:
    """Where S3 is, if the environment says."""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return next((os.environ[name] for name in names if name in os.environ), "")


def explain(error: Exception) -> str:
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


class Bucket:
    """What sources and sinks of files ask of an object store. Every call blocks: not for trio's loop.

    A store is opened in each process that asks for something, and so are its connections.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self.title = title_of(address)
        self._store: ObjectStore | None = None

    def __reduce__(self) -> tuple[type[Bucket], tuple[str]]:
        return Bucket, (self._address,)

    def _ask(self, what: str, ask: Callable[[ObjectStore], T], *expected: type[Exception]) -> T:
        from obstore.exceptions import BaseError

        if self._store is None:
            self._store = open_store(self._address)
        try:
            return ask(self._store)
        except expected:
            raise
        except (BaseError, OSError, ValueError) as error:
            raise BucketError(f"{self.title} cannot {what}: {explain(error)}") from None

    def names(self, folder: str = "") -> list[str]:
        """All names under a folder, sorted."""
        import obstore

        listed = lambda store: [blob["path"] for some in obstore.list(store, folder or None) for blob in some]  # noqa: E731
        return sorted(self._ask("list", listed))

    def size(self, name: str) -> int | None:
        """How many bytes a blob has; None if there is none."""
        import obstore
        from obstore.exceptions import NotFoundError

        try:
            return self._ask("look", lambda store: obstore.head(store, name)["size"], NotFoundError, FileNotFoundError)
        except (NotFoundError, FileNotFoundError):
            return None

    def range(self, name: str, start: int, length: int) -> bytes:
        """Some bytes of a blob."""
        import obstore

        return self._ask("get", lambda store: obstore.get_range(store, name, start=start, length=length).to_bytes())

    def get(self, name: str) -> bytes:
        """A whole blob."""
        import obstore

        return self._ask("get", lambda store: obstore.get(store, name).bytes().to_bytes())

    def put(self, name: str, data: bytes | Path | IO[bytes]) -> None:
        """Stores a blob, or a file as one."""
        import obstore

        self._ask("put", lambda store: obstore.put(store, name, data))

    def copy(self, name: str, to: str) -> bool:
        """Copies a blob over another, or to a new name; False if there is none."""
        import obstore
        from obstore.exceptions import NotFoundError

        try:
            self._ask("copy", lambda store: obstore.copy(store, name, to), NotFoundError, FileNotFoundError)
        except (NotFoundError, FileNotFoundError):
            return False
        return True

    def delete(self, name: str) -> None:
        """Deletes a blob, if there is one."""
        import obstore
        from obstore.exceptions import NotFoundError

        try:
            self._ask("delete", lambda store: obstore.delete(store, name), NotFoundError, FileNotFoundError)
        except (NotFoundError, FileNotFoundError):
            return

    def open(self, name: str) -> io.BufferedReader:
        """A blob as a file. FileNotFoundError if there is none."""
        size = self.size(name)
        if size is None:
            raise FileNotFoundError(f"there is no {name} in {self.title}")
        return io.BufferedReader(_Blob(self, name, size), _PIECE)


class _Blob(io.RawIOBase):
    """A blob, of which parts are asked for as they are read."""

    def __init__(self, bucket: Bucket, name: str, size: int) -> None:
        self._bucket, self._name, self._size = bucket, name, size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        length = min(len(view), self._size - self._place)
        if length <= 0:
            return 0
        view[:length] = self._bucket.range(self._name, self._place, length)
        self._place += length
        return length
