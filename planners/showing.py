"""What people see of a loop: what it decided of late, and a switch for whether it acts (docs/operating.md)."""

from __future__ import annotations

from collections import deque
from time import time
from typing import Protocol

LATELY = 200  # decisions


class SeenDecision(Protocol):
    """What every loop decides: its text says what and why."""

    @property
    def acts(self) -> bool:
        """Whether something is to change."""
        ...


class ShownLoop:
    """A loop that shows itself, if what it steers can be looked at (`dataflow.build.hooks.DecisionLoop`).

    `dry_run` may be set at any time: from then on it decides and says so, and changes nothing.
    """

    def __init__(self, title: str, steered: object, dry_run: bool) -> None:
        self.title = title
        self.dry_run = dry_run
        self.lately: deque[tuple[float, bool, bool, str]] = deque(maxlen=LATELY)
        show = getattr(steered, "show_loop", None)
        if show is not None:
            show(self)

    def show(self, decision: SeenDecision) -> None:
        """Keeps a decision for those who look."""
        self.lately.append((time(), decision.acts, self.dry_run, str(decision)))
