"""Standard input, wherever a worker runs: workers of their own process have none, and get that of whoever started
them here."""

from __future__ import annotations

import os
import stat

_given = 0  # the descriptor


def give_input(descriptor: int) -> None:
    """Standard input is at a descriptor of this process."""
    global _given
    _given = descriptor


def input_descriptor() -> int:
    """Where standard input is."""
    return _given


def input_is_file() -> bool:
    """Whether standard input is a file, of which any part can be read again."""
    try:
        return stat.S_ISREG(os.fstat(_given).st_mode)
    except OSError:
        return False
