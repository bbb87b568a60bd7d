"""Standard input: lines. One partition; if it is a file, a position is a byte, else there are none (see
`journaled`)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import suppress

import trio

from dataflow.clients.extras import require_number
from dataflow.clients.standard import input_descriptor, input_is_file
from dataflow.operators.partitions import Item, Partitions, SourceError

_PIECE = 1 << 16  # bytes


class _Stdin(Partitions[str]):
    moves = False  # worker 0 has it

    def __init__(self, batch: int, encoding: str) -> None:
        self._batch = batch
        self._encoding = encoding

    @property
    def resumable(self) -> bool:  # type: ignore[override]
        return input_is_file()

    def __repr__(self) -> str:
        return "<standard input>"

    async def partitions(self) -> list[str]:
        """One, which worker 0 reads."""
        return ["stdin"]

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[str]]:
        """Lines behind a byte."""
        if position is not None and (type(position) is not int or position < 0):
            raise SourceError(f"{self!r}: {position!r} is no position: a number of bytes was expected")
        behind, rest = position or 0, b""
        read = behind
        while data := await _more(read):
            read += len(data)
            *whole, rest = (rest + data).split(b"\n")
            for first in range(0, len(whole), self._batch):
                lines = whole[first : first + self._batch]
                behind += sum(len(line) + 1 for line in lines)
                yield behind, None, [self._text(line) for line in lines]
        if rest:
            yield behind + len(rest), None, [self._text(rest)]

    def _text(self, line: bytes) -> str:
        try:
            return line.decode(self._encoding).removesuffix("\r")
        except UnicodeDecodeError as error:
            raise SourceError(f"{self!r} is not {self._encoding}: {error}") from None


async def _more(offset: int) -> bytes:
    """What comes next; nothing at the end. A file is read at a byte, since workers of earlier lives have moved its own
    place."""
    await trio.lowlevel.checkpoint()
    descriptor = input_descriptor()
    if input_is_file():
        return os.pread(descriptor, _PIECE, offset)
    with suppress(OSError):  # what cannot be waited for, such as /dev/null, is always ready
        await trio.lowlevel.wait_readable(descriptor)
    return os.read(descriptor, _PIECE)


def stdin(batch: int = 1000, *, encoding: str = "utf-8") -> Partitions[str]:
    """The lines of standard input, `batch` of them at each time at most; also where workers are processes of their own.
    Worker 0 reads it. With recovery it must be a file (`python app.py < lines.txt`) or `journaled`."""
    require_number("sources.stdin", "batch", batch, 1, whole=True)
    return _Stdin(batch, encoding)
