"""What is said about a snapshot inside its dataflow: the announcement, each worker's part, the outcome. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from dataflow.recovery.manifest import SavedFile
from dataflow.time.order import Time


@dataclass(frozen=True)
class AnnouncedCut:
    """A snapshot is to be taken at a time."""

    time: Time


@dataclass(frozen=True)
class SnapshotPart:
    """What one worker has of a snapshot. `failure`: why it has not."""

    worker: int
    cut: Time
    files: list[SavedFile] = field(default_factory=list)
    shares: dict[str, bytes] = field(default_factory=dict)  # plain ones, by participant, encoded
    tokens: dict[str, bytes] = field(default_factory=dict)
    seen: Time | None = None
    failure: str = ""


@dataclass(frozen=True)
class SnapshotOutcome:
    """What became of a snapshot: `number` is its manifest's, or None if it was abandoned, and `why`."""

    cut: Time
    time: Time  # where a run that goes on from it resumes
    number: int | None
    why: str = ""
    stale: dict[str, list[int]] = field(default_factory=dict)  # shards to write again: their files are nearly empty
