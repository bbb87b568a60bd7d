"""The name of a run that was not given one: every run can be found."""

from __future__ import annotations

import re
import sys
from pathlib import PurePath

_MOST = 1000  # runs of one program at a time


class Suggested(str):
    """A name that gives way: where it is taken the run gets a number after it, and where there is no folder for sockets
    it has no name, and goes on all the same."""

    __slots__ = ()

    def each(self) -> list[str]:
        """The names to try, in order."""
        return [str(self), *(f"{self}-{number}" for number in range(2, _MOST))]


def suggest(program: str | None = None) -> Suggested:
    """A name made of that of a module, or of the script that this process runs.

    >>> suggest("jobs.word_count"), suggest("a b/../c!"), suggest("/srv/app/__main__.py")
    ('word_count', 'c', 'app')
    """
    path = PurePath(program if program is not None else (sys.argv[0:1] or [""])[0])
    stem = path.name.removesuffix(".py")
    stem = path.parent.name if stem == "__main__" else stem.rpartition(".")[2] or stem
    cleaned = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_")[:48]
    return Suggested(cleaned or "run")
