"""A folder for the sockets of runs, for each test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the sockets are; the name is longer than that of a socket may be."""
    above = tmp_path / ("long-" * 30)
    above.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(above))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return above / "dataflow"
