"""Compressed files, by the end of their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import BinaryIO, cast

DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""What is raised when a file is not whole, or not what its name says."""

_PIECE = 1 << 18  # bytes that are decompressed at once
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".lz4": "lz4"}


def compression_of(name: str) -> str | None:
    """How a file is compressed, by the end of its name; None if it is not."""
    return _COMPRESSIONS.get(Path(name).suffix.lower())


def decompressed(file: BinaryIO, name: str) -> BinaryIO:
    """What is in a file. Whoever closes that closes the file."""
    kind = compression_of(name)
    if kind is None:
        return file
    inner: object
    if kind == "gzip":
        inner = gzip.GzipFile(fileobj=file)
    elif kind == "bz2":
        inner = bz2.BZ2File(file)
    elif kind == "xz":
        inner = lzma.LZMAFile(file)  # noqa: SIM115  # closed with what is returned
    else:
        import pyarrow as pa

        inner = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), kind)
    return cast(BinaryIO, _Closing(inner, file))


class _Closing(io.BufferedReader):
    """A reader over another file, which it closes as well."""

    def __init__(self, inner: object, outer: BinaryIO) -> None:
        super().__init__(cast(io.RawIOBase, inner), _PIECE)
        self._outer = outer

    def close(self) -> None:
        super().close()
        self._outer.close()
