"""Under what circumstances numbers were taken, and the JSON files that keep both together."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from megaphone.harness.machine import Machine, describe, one_line
from megaphone.harness.revision import current_revision


@dataclass(frozen=True)
class Provenance:
    """How a run was made: `Provenance(["python", "-m", "nexmark", *sys.argv[1:]])`.

    Taken before the run starts, as the tree may change under a long one.
    """

    arguments: Sequence[str]
    revision: str = field(default_factory=current_revision)
    machine: Machine = field(default_factory=describe)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def command(self) -> str:
        """What to type to have it again."""
        return shlex.join(self.arguments)

    @property
    def short_revision(self) -> str:
        """Twelve digits, and whether the tree was dirty."""
        commit, dirty, _ = self.revision.partition("-dirty")
        return f"{commit[:12]}{dirty}"

    def summary(self) -> str:
        """Revision and machine in a line."""
        return f"revision {self.short_revision} on {one_line(self.machine)}"

    def to_dict(self) -> dict[str, str | Machine]:
        """For the head of a document."""
        return {
            "revision": self.revision,
            "machine": self.machine,
            "command": self.command,
            "started": self.started.isoformat(timespec="seconds"),
        }


def check_writable(path: Path) -> None:
    """Raises the OSError now that writing to `path` would raise after an hour of measuring; leaves no trace."""
    existed = path.exists()
    with path.open("a"):
        pass
    if not existed:
        path.unlink()


def write_document(path: Path, provenance: Provenance, body: Mapping[str, object]) -> None:
    """Writes what was measured, under what it was measured with, as JSON that any reader takes (no NaN)."""
    document = {**provenance.to_dict(), **body}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
