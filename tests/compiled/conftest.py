"""An empty cache for each test, and a teller that has said nothing yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataflow.compiled import telling


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which compiled code will be kept; it does not exist yet."""
    teller = telling.Teller()
    monkeypatch.setattr("dataflow.compiled.cache_folder.teller", teller)
    monkeypatch.setattr("dataflow.compiled.kernel.teller", teller)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("dataflow.compiled.cache_folder.gettempdir", lambda: "/dev/null")  # no folder can be made in it
    return tmp_path / "cache" / "megaphone-dataflow" / "compiled"
