"""A page that begins and ends with its run: `python -m dataflow run --page`.

It is a process of its own, so that nobody who looks takes a moment from the run. It finds the run by the process that
has its socket, and ends when the pipe from that process does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import trio

from dataflow.asking.client import NoSuchRun, ask_run, list_runs
from dataflow.asking.messages import Question, Refused
from dataflow.comm.codec import require_mapping

NEEDED = ("hypercorn", "starlette")
_LOOK = 0.2  # seconds between looks for a run that begins
_ASK = 5.0
_END = 5.0


def require_extra() -> None:
    """ValueError if what the page is served with is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ValueError(f"the page needs {' and '.join(missing)}: pip install 'megaphone-dataflow[page]'")


@contextmanager
def page_beside() -> Iterator[None]:
    """A page for the run that this process begins in the block."""
    command = [sys.executable, "-m", "dataflow.page", str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as page:
        try:
            yield
        finally:
            assert page.stdin is not None
            page.stdin.close()
            try:
                page.wait(_END)
            except subprocess.TimeoutExpired:
                page.kill()


def find_run(pid: int) -> str | None:
    """The name of the run whose socket a process has; None if there is none yet."""
    for name in list_runs():
        try:
            facts = require_mapping(ask_run(name, Question("who"), _ASK))
        except (NoSuchRun, Refused, ValueError):
            continue
        if facts.get("pid") == pid:
            return name
    return None


async def wait_for_run(pid: int) -> str:
    """Waits until that process has a run."""
    while True:
        name = await trio.to_thread.run_sync(find_run, pid, abandon_on_cancel=True)
        if name is not None:
            return name
        await trio.sleep(_LOOK)


async def wait_for_end_of(fd: int) -> None:
    """Waits until the other end of a pipe is closed."""
    async with trio.lowlevel.FdStream(os.dup(fd)) as stream:
        while await stream.receive_some():
            pass
