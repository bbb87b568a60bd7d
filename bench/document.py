"""Results as a JSON file, with all that is needed to tell later what they were."""

from collections.abc import Sequence
from pathlib import Path

from bench.run import Measurement
from megaphone.harness.provenance import Provenance, write_document


def write(path: Path, provenance: Provenance, results: Sequence[Measurement], *, complete: bool) -> None:
    """``complete`` is false when the run was interrupted or failed, and ``results`` is what there was by then."""
    write_document(path, provenance, {"complete": complete, "results": [_entry(result) for result in results]})


def _entry(result: Measurement) -> dict[str, str | float | None]:
    return {
        "name": result.name,
        "value": result.value,
        "unit": result.unit,
        "baseline": result.baseline,
        "ratio": result.ratio,
    }
