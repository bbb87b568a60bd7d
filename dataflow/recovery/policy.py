"""How often, where and how long snapshots are kept, and how often a run is tried again. (A stub.)"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeAlias

Where: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class Recovery:
    """How a run is recovered."""

    where: object
    every: float = 10.0
    keep: int = 3
    restarts: int = 5
    window: float = 600.0

    def plain(self) -> object:
        return [str(self.where), self.every, self.keep, self.restarts, self.window]

    @classmethod
    def from_plain(cls, plain: object) -> Recovery:
        return cls(*plain)


def as_recovery(recovery: Where | Recovery | None) -> Recovery | None:
    return recovery if recovery is None or isinstance(recovery, Recovery) else Recovery(recovery)
