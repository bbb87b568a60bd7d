"""Whole lines out of pieces of output. Pure."""

from __future__ import annotations


class LineAssembler:
    """Turns chunks of bytes into text that ends at the end of a line.

    >>> lines = LineAssembler(prefix="[0] ")
    >>> lines.feed(b"one" + b"\\ntw"), lines.feed(b"o\\n"), lines.feed(b"rest"), lines.close()
    ('[0] one\\n', '[0] two\\n', '', '[0] rest\\n')
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._rest = b""

    def feed(self, chunk: bytes) -> str:
        """The lines that this chunk completes."""
        whole, newline, rest = (self._rest + chunk).rpartition(b"\n")
        self._rest = rest
        return self._decorate(whole + newline) if newline else ""

    def close(self) -> str:
        """What was left of a line, as a line."""
        rest, self._rest = self._rest, b""
        return self._decorate(rest + b"\n") if rest else ""

    def _decorate(self, lines: bytes) -> str:
        text = lines.decode("utf-8", "backslashreplace")
        if not self._prefix:
            return text
        return "".join(self._prefix + line for line in text.splitlines(keepends=True))
