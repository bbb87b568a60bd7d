"""A PostgreSQL server for all tests that want one, and a folder that is quick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.connectors.places import LOCAL, SERVED, Postgres, Shown, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server."""
    with server() as address:
        yield address


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where that is possible: these tests make hundreds of files durable, and do not test the disk."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(params=[*LOCAL, *SERVED], ids=lambda kind: kind.__name__)
def shown(request: pytest.FixtureRequest, tmp_path: Path) -> Shown:
    """A sink of each kind."""
    kind: type[Shown] = request.param
    if issubclass(kind, Postgres):
        kind.address = request.getfixturevalue("postgres")
    return kind(tmp_path)
