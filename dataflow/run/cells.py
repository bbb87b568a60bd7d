"""Exceptions in a notebook: a note says in which cell and line the program's own code raised, also on a worker that is
another process, whose traceback has no text of cells."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Callable

_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)


def point_at_cell(error: BaseException) -> None:
    """Adds the note, if this is a notebook and code of one of its cells took part."""
    label = _labels()
    if label is None:
        return
    frames = [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
    cause = error.__cause__
    text = getattr(cause, "text", "")  # of a worker's traceback
    if isinstance(text, str):
        frames += [(file, int(line), name) for file, line, name in _FRAME.findall(text)]
    for file, line, name in reversed(frames):
        cell = label(file)
        if cell is not None:
            source = linecache.getline(file, line).strip()
            error.add_note(f"your code: {cell}, line {line}, in {name}{f': {source}' if source else ''}")
            return


def _labels() -> Callable[[str], str | None] | None:
    """What a notebook calls its cells, by the names of the files that stand for them; None if this is no notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    compiler = getattr(shell, "compile", None)
    if compiler is None or not hasattr(compiler, "format_code_name"):
        return None

    def label(file: str) -> str | None:
        named = compiler.format_code_name(file)
        return None if named is None else " ".join(map(str, named))

    return label
