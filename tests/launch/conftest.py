"""A place to run programs in, which must be empty when a test ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.arena import Arena


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    """Fails a test that leaves processes, files or shared memory behind."""
    arena = Arena(tmp_path)
    try:
        yield arena
        arena.settled()
    finally:
        arena.clear()
