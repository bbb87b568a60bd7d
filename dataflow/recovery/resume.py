"""What a worker is told about recovery when a life begins: plain data that can travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dataflow.comm import codec
from dataflow.recovery.policy import Recovery


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a worker goes on, and where it keeps snapshots."""

    recovery: Recovery
    incarnation: int  # of this life; that of another run or life differs
    manifests: Mapping[str, bytes | None] = field(default_factory=dict)  # by dataflow, what was claimed, encoded

    def encode(self) -> bytes:
        """For the way to another process. TypeError if the storage is an object of this process."""
        return codec.encode([self.recovery.plain(), self.incarnation, dict(self.manifests)])

    @classmethod
    def decode(cls, data: bytes) -> Resume:
        """What was encoded."""
        plain, incarnation, manifests = codec.decode(data)
        return cls(Recovery.from_plain(plain), incarnation, manifests)
