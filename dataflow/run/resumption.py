"""Where main goes on: from the beginning, or from a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Resumption:
    """A time, and by worker what its main had saved."""

    time: int = 0
    saved: Mapping[int, object] = field(default_factory=dict)
