"""A run with its page, as a person starts it; and a browser that looks at it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from dataflow.commands.asking import Status
from tests.page.browser import Viewer, browsing


@dataclass(frozen=True)
class Shown:
    """A run and its page."""

    name: str
    address: str
    process: subprocess.Popen[str]

    @property
    def origin(self) -> str:
        """The address without the token."""
        return self.address.partition("/#")[0]

    @property
    def token(self) -> str:
        """What is needed."""
        return self.address.partition("token=")[2]

    def status(self) -> Status:
        """What the run itself says."""
        return Status(self.name)


@contextmanager
def shown(program: str, *arguments: str, workers: int = 2) -> Iterator[Shown]:
    """`python -m dataflow run --page`, until the block ends."""
    name = f"page-{program}-{os.getpid()}"
    command = [sys.executable, "-m", "dataflow", "run", f"tests.page.program:{program}", "--workers", str(workers)]
    command += ["--name", name, "--page", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if found := re.search(r"http://\S+", line):
                    yield Shown(name, found[0], process)
                    break
            else:
                raise AssertionError(f"no page was announced: {''.join(said)}")
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture(scope="package")
def page() -> Iterator[Shown]:
    """Orders, on two workers."""
    with shown("main", "0.05", "100") as found:
        yield found


@pytest.fixture(scope="package")
def viewer() -> Iterator[Viewer]:
    """One browser for all tests; each opens the page anew."""
    with browsing() as found:
        yield found


@pytest.fixture
def looking(viewer: Viewer, page: Shown) -> Viewer:
    """Somebody who has opened the page, and sees the run."""
    viewer.open(page.address)
    viewer.says("#link", "live")
    viewer.says("#facts", "2 workers")
    return viewer
