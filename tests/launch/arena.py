"""Programs in sessions of their own, marked, so that whatever is left of them can be found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import dataflow

ROOT = Path(dataflow.__file__).parents[1]
MARK = "DATAFLOW_TEST_MARK"
SOON = 8.0  # seconds: "within a few", on a machine that may be busy with other things
READY = 60.0  # seconds: nothing is promised of how long programs take to start, or to get somewhere
PREAMBLE = """
import os, signal, subprocess, sys, time, trio, dataflow, dataflow.errors
from dataflow.launch.supervisor import Settings, run_processes
"""


@dataclass(frozen=True)
class Ended:
    """How a program ended, and what it said."""

    status: int
    out: str
    err: str
    seconds: float  # since the moment that `waited_from` was taken, or since its start

    @property
    def message(self) -> str:
        """The last line of what it said on standard error: what people read."""
        lines = self.err.strip().splitlines()
        return lines[-1] if lines else ""


class Program:
    """A running program."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, name: str) -> None:
        self.process = process
        self.pid = process.pid
        self._folder = folder
        self._name = name
        self._since = time.monotonic()

    def zygotes(self) -> list[int]:
        """The process that it has started for workers to be forked from, if it has."""
        return _children(self.pid)

    def workers(self, count: int) -> list[int]:
        """Its workers, once there are so many; oldest first."""
        wait_until(lambda: len(self.children()) == count, f"{count} workers of {self._name}", READY)
        return self.children()

    def children(self) -> list[int]:
        """Its workers, oldest first: forks of a zygote that print to pipes of their own."""
        return [
            worker
            for zygote in self.zygotes()
            for worker in _children(zygote)
            if _printing_to(worker) not in (_printing_to(zygote), "")
        ]

    def wait_for(self, text: str) -> None:
        """Waits until that has been printed."""
        wait_until(lambda: text in self.out or self.process.poll() is not None, f"{text!r} from {self._name}", READY)
        assert text in self.out, f"{self._name} ended without printing {text!r}:\n{self.err}"

    @property
    def out(self) -> str:
        return (self._folder / f"{self._name}.out").read_bytes().decode(errors="replace")

    @property
    def err(self) -> str:
        return (self._folder / f"{self._name}.err").read_bytes().decode(errors="replace")

    def interrupt(self) -> None:
        """Ctrl-C: reaches every process of the terminal's foreground group."""
        self.mark_time()
        os.killpg(self.pid, signal.SIGINT)

    def mark_time(self) -> None:
        """From now on it is expected to end."""
        self._since = time.monotonic()

    def end(self, within: float = 30.0) -> Ended:
        """Waits for its end."""
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self._name} has not ended:\n{self.out}\n{self.err}") from None
        return Ended(status, self.out, self.err, time.monotonic() - self._since)


class Arena:
    """Where programs run. `settled` says that nothing is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.runtime = folder / "runtime"  # for sockets: what a killed run leaves, its next one replaces
        self.runtime.mkdir(mode=0o700)
        self._mark = uuid.uuid4().hex
        self._shared = _segments()
        self._count = 0
        self.environment = {
            **os.environ,
            MARK: self._mark,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
            "TMPDIR": str(self.temporary),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.environment.pop("PYTHONUNBUFFERED", None)

    def write(self, name: str, code: str) -> Path:
        """A module in the folder from which programs are run."""
        path = self.folder / name
        path.write_text(PREAMBLE + textwrap.dedent(code))
        return path

    def script(self, code: str, *arguments: str, **options: object) -> Program:
        """Starts a script."""
        path = self.write(f"script{self._count}.py", code)
        return self.start([sys.executable, str(path), *arguments], **options)

    def cli(self, *arguments: str, **options: object) -> Program:
        """Starts `python -m dataflow ...`."""
        return self.start([sys.executable, "-m", "dataflow", *arguments], **options)

    def start(
        self,
        command: Sequence[str],
        stdout: int | None = None,
        environment: dict[str, str] | None = None,
        name: str | None = None,
    ) -> Program:
        """Starts a command in a session of its own; what it prints goes to files, unless `stdout` says otherwise."""
        name = name or f"program{self._count}"
        self._count += 1
        with open(self.folder / f"{name}.out", "wb") as out, open(self.folder / f"{name}.err", "wb") as err:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**self.environment, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out if stdout is None else stdout,
                stderr=err,
                start_new_session=True,
            )
        return Program(process, self.folder, name)

    def processes(self) -> dict[int, str]:
        """All processes that have anything to do with this arena, zombies left out."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
                command = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it has just ended
            if f"{MARK}={self._mark}".encode() in environment and state != "Z":
                found[int(entry)] = command
        return found

    def settled(self) -> None:
        """Fails unless all processes are gone, soon, and nothing else is left."""
        wait_until(lambda: not self.processes(), lambda: f"the end of {self.processes()}")
        assert _listing(self.temporary) == set(), "temporary files are left"
        assert _segments() <= self._shared, "shared memory is left"

    def clear(self) -> None:
        """Ends whatever a test that failed has left."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def wait_until(condition: Callable[[], object], what: str | Callable[[], str], seconds: float = SOON) -> None:
    """Waits until a condition holds; fails, saying what was waited for, after a while."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"still waiting after {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.01)


def _children(pid: int) -> list[int]:
    """The processes that a process has started and not reaped, oldest first."""
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def _printing_to(pid: int) -> str:
    """What a process has for its standard output; empty if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/fd/1")
    except OSError:
        return ""


def _segments() -> set[str]:
    """Named segments of shared memory. (Folders, and what databases have there, are those of other tests, which may run
    at the same time.)"""
    names = (name for name in _listing("/dev/shm") if not name.startswith("PostgreSQL."))
    return {name for name in names if os.path.isfile(f"/dev/shm/{name}")}


def _listing(folder: str | Path) -> set[str]:
    return set(os.listdir(folder)) if os.path.isdir(folder) else set()
