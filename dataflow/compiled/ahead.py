"""What workers will import, known before there are any.

With recovery a worker that dies is replaced by a fork of the zygote, and everybody waits until that is ready. What it
would import then takes most of a second (the compiler, and our kernels), so the zygote has imported it before. Only
what the program is sure to use: who has imported the module in which folds are made has folds.
"""

from __future__ import annotations

import sys
from importlib import import_module

_following: dict[str, list[str]] = {}


def expect(module: str, *following: str) -> None:
    """Where `module` has been imported, workers import these as well, when they build a dataflow."""
    _following.setdefault(module, []).extend(following)


def load_ahead() -> None:
    """Imports what workers will. What cannot be imported is left to them: they say so to whoever waits for them."""
    for module, following in _following.items():
        if module in sys.modules:
            for name in following:
                try:
                    import_module(name)
                except Exception:  # a worker that really needs it raises the same, with the operator's name
                    return
