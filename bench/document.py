"""Results as a JSON file, with all that is needed to tell later what they were."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import Machine, describe, one_line
from bench.revision import current_revision
from bench.run import Result


def check_writable(path: Path) -> None:
    """Raise the OSError now that writing to ``path`` would raise after an hour of measuring; leaves no trace."""
    existed = path.exists()
    with path.open("a"):
        pass
    if not existed:
        path.unlink()


@dataclass(frozen=True)
class Provenance:
    """Under what circumstances a run was made; taken before it starts, as the tree may change under a long one."""

    arguments: Sequence[str]
    revision: str = field(default_factory=current_revision)
    machine: Machine = field(default_factory=describe)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def command(self) -> str:
        return shlex.join(["python", "-m", "bench", *self.arguments])

    def summary(self) -> str:
        commit, dirty, _ = self.revision.partition("-dirty")
        return f"revision {commit[:12]}{dirty} on {one_line(self.machine)}"


def write(path: Path, provenance: Provenance, results: Sequence[Result], *, complete: bool) -> None:
    """``complete`` is false when the run was interrupted or failed, and ``results`` is what there was by then."""
    document = {
        "revision": provenance.revision,
        "machine": provenance.machine,
        "command": provenance.command,
        "started": provenance.started.isoformat(timespec="seconds"),
        "complete": complete,
        "results": [_entry(result) for result in results],
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _entry(result: Result) -> dict[str, str | float | None]:
    return {
        "name": result.name,
        "value": result.value,
        "unit": result.unit,
        "baseline": result.baseline,
        "ratio": result.ratio,
    }
