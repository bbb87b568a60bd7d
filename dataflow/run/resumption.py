"""Where main goes on: from the beginning, or from a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataflow.recovery.resume import Resume


@dataclass(frozen=True, slots=True)
class Resumption:
    """A time, and by worker what its main had saved."""

    time: int = 0
    saved: Mapping[int, object] = field(default_factory=dict)


def resumption_of(resume: Resume | None) -> Resumption:
    """Where main goes on; of several dataflows, where the first one does."""
    if resume is None:
        return Resumption()
    from dataflow.recovery.format import decode_manifest
    from dataflow.recovery.main_values import NAME, saved_values

    manifests = [decode_manifest(data, name) for name, data in sorted(resume.manifests.items()) if data is not None]
    for manifest in manifests:
        if manifest.time is not None:
            return Resumption(manifest.time, saved_values(manifest.share_values(NAME)))
    return Resumption()
