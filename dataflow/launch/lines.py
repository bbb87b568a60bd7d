"""Whole lines: a process passes on each as it is completed, and whoever reads it puts them together again."""

from __future__ import annotations

import sys
from typing import TextIO


def print_lines() -> None:
    """From now on this process passes on each line that it prints as it is completed, in UTF-8."""
    sys.stdout = _line_stream(1)
    sys.stderr = _line_stream(2)


def _line_stream(fd: int) -> TextIO:
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


class LineAssembler:
    """Turns chunks of bytes into text that ends at the end of a line.

    >>> lines = LineAssembler(prefix="[0] ")
    >>> lines.feed(b"one" + b"\\ntw"), lines.feed(b"o\\n"), lines.feed(b"rest"), lines.close()
    ('[0] one\\n', '[0] two\\n', '', '[0] rest\\n')
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix.encode()
        self._rest: list[bytes] = []  # the beginning of a line, in pieces: joined once, however long it gets

    def feed(self, chunk: bytes) -> str:
        """The lines that this chunk completes."""
        whole, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._rest.append(chunk)
            return ""
        lines = b"".join([*self._rest, whole, newline])
        self._rest = [rest] if rest else []
        return self._decorate(lines)

    def close(self) -> str:
        """What was left of a line, as a line."""
        rest, self._rest = b"".join(self._rest), []
        return self._decorate(rest + b"\n") if rest else ""

    def _decorate(self, lines: bytes) -> str:
        if self._prefix:
            lines = self._prefix + lines[:-1].replace(b"\n", b"\n" + self._prefix) + b"\n"
        return lines.decode("utf-8", "backslashreplace")
