"""Whole lines out of pieces of output. Pure."""

from __future__ import annotations


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
