"""Sinks of each kind, with the servers that they need, and a folder that is quick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.connectors.places import LOCAL, QUEUES, SERVED, BucketJsonLines, Postgres, Queue, Shown


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where that is possible: these tests make hundreds of files durable, and do not test the disk."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(params=[*LOCAL, *SERVED, *QUEUES], ids=lambda kind: kind.__name__)
def shown(request: pytest.FixtureRequest, tmp_path: Path) -> Shown:
    """A sink of each kind."""
    return make_shown(request, tmp_path)


@pytest.fixture(params=[*LOCAL, *SERVED], ids=lambda kind: kind.__name__)
def shaped(request: pytest.FixtureRequest, tmp_path: Path) -> Shown:
    """A sink of each kind that has columns."""
    return make_shown(request, tmp_path)


def make_shown(request: pytest.FixtureRequest, folder: Path) -> Shown:
    """A sink, with the server that it needs."""
    kind: type[Shown] = request.param
    if issubclass(kind, Postgres):
        kind.address = request.getfixturevalue("postgres")
    if issubclass(kind, BucketJsonLines):
        request.getfixturevalue("s3_bucket")
    if issubclass(kind, Queue):
        kind.address = request.getfixturevalue(kind.fixture)
    return kind(folder)
