"""Files in an object store."""

from __future__ import annotations

import glob
from fnmatch import fnmatchcase
from typing import BinaryIO

from dataflow.clients.buckets import Bucket, BucketError, open_store, title_of
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import SourceError


class BucketFiles:
    """The files that an address stands for: a blob, those of a folder, or those that match a pattern. As `FileSet`."""

    remote = True

    def __init__(self, address: str, follow: bool) -> None:
        scheme, _, rest = address.partition("://")
        parts = rest.split("/")
        fixed = next((n for n, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        if fixed == 0:
            raise ConstructionError(f"{title_of(address)}: a pattern cannot choose buckets: name one")
        self.title = title_of(address)
        self._follow = follow
        top, self._one = f"{scheme}://{'/'.join(parts[:fixed])}", ""
        self._pattern = parts[fixed:] or ["[!._]*"]
        if fixed == len(parts) > 1 and parts[-1]:  # perhaps a blob, and not a folder
            top, self._one = f"{scheme}://{'/'.join(parts[:-1])}", parts[-1]
        try:
            self._bucket = Bucket(top)
            open_store(top)  # says what is wrong with the address
        except (ValueError, BucketError) as error:
            raise ConstructionError(str(error)) from None
        self._inner = self._one + "/" if self._one else ""

    def names(self) -> list[str]:
        """The names of those that there are now, sorted."""
        try:
            if self._one and self._bucket.size(self._one) is not None:
                return [self._one]
            found = [name.removeprefix(self._inner) for name in self._bucket.names(self._one)]
        except BucketError as error:
            raise SourceError(str(error)) from None
        names = sorted(name for name in found if _fits(name.split("/"), self._pattern))
        if not names and not self._follow:
            raise SourceError(f"there is nothing at {self.title}")
        return names

    def where(self, name: str) -> str:
        """What one is called when it is talked about."""
        return f"{self._bucket.title}/{self._full(name)}"

    def open(self, name: str) -> BinaryIO:
        """One of them, as it is."""
        return self._bucket.open(self._full(name))

    def _full(self, name: str) -> str:
        return name if name == self._one else f"{self._inner}{name}"


def _fits(name: list[str], pattern: list[str]) -> bool:
    """Whether a name matches a pattern, both in parts: `**` stands for any number of folders, `*` for one."""
    if not pattern or not name:
        return not name and all(part == "**" for part in pattern)
    if pattern[0] == "**":
        return _fits(name, pattern[1:]) or _fits(name[1:], pattern)
    return fnmatchcase(name[0], pattern[0]) and _fits(name[1:], pattern[1:])
