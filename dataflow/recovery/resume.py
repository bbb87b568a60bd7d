"""What a worker is told about recovery when a life begins: plain data that can travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from dataflow.comm import codec
from dataflow.recovery.opening import is_in_this_process
from dataflow.recovery.policy import Recovery


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a worker goes on, and where it keeps snapshots."""

    recovery: Recovery
    incarnation: int  # of this life; that of another run or life differs
    manifests: Mapping[str, bytes | None] = field(default_factory=dict)  # by dataflow, what was claimed, encoded
    since: float = 0.0  # wall clock: when the failure was seen that this life follows, or the run began
    title: str = ""  # what people are told of where it goes on; empty at the very beginning

    def for_joiner(self) -> Resume:
        """For a worker that joins: it goes on from nothing, and takes part in snapshots."""
        return replace(self, manifests={})

    def encode(self) -> bytes:
        """For the way to another process. ValueError if only this one can see the storage."""
        require_visible(self.recovery)
        plain = {each.name: getattr(self.recovery, each.name) for each in fields(Recovery)}
        return codec.encode([plain, self.incarnation, dict(self.manifests), self.since, self.title])

    @classmethod
    def decode(cls, data: bytes) -> Resume:
        """What was encoded."""
        plain, incarnation, manifests, since, title = codec.decode(data)
        return cls(Recovery(**plain), incarnation, manifests, since, title)


def require_visible(recovery: Recovery) -> None:
    """ValueError if other processes could not see what is stored."""
    if is_in_this_process(recovery.where):
        raise ValueError(
            "several workers are several processes, and only this one can see what is kept in its memory: keep "
            "snapshots in a folder or an object store, or the workers in this process with in_process=True"
        )
