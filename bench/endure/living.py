"""The run as a process: it is started, asked, killed, and started again as a person would."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dataflow.commands.asking import Status
from dataflow.errors import DataflowError
from dataflow.run.readings import WorkerReading

_CLOCK = Path(__file__).with_name("clock.c")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where everything of a run is, below one folder."""

    folder: Path

    @property
    def lines(self) -> Path:
        """What is read."""
        return self.folder / "lines"

    @property
    def state(self) -> Path:
        """Snapshots: a small disk of their own, where that can be had."""
        return self.folder / "state"

    @property
    def database(self) -> Path:
        """The table."""
        return self.folder / "out.db"

    @property
    def clock(self) -> Path:
        """By how many seconds the run's wall clock is off: eight bytes, which its processes have mapped."""
        return self.folder / "clock"

    @property
    def clock_library(self) -> Path:
        """What makes the run believe that."""
        return self.folder / "clock.so"

    @property
    def log(self) -> Path:
        """What the run says."""
        return self.folder / "run.log"


class LongRun:
    """A run that is started again whenever it has ended."""

    def __init__(self, places: RunFolder, name: str, workers: int) -> None:
        self.places, self.name, self.workers = places, name, workers
        self.starts = 0
        self.statuses: list[int] = []  # with which it has ended, one for each start but the last
        self._killed = False  # whether we have
        self._mending = threading.Lock()
        self.clock_can_jump = _build_clock(places.clock_library)
        self.set_clock(0)
        self._log = places.log.open("ab")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        command = [
            sys.executable, "-m", "dataflow", "run", "bench.endure.app:main", "--name", self.name,
            "--workers", str(self.workers), "--recovery", str(self.places.state), "--every", "2", "--restarts", "1000",
            str(self.places.lines), str(self.places.database),
        ]  # fmt: skip
        return subprocess.Popen(command, stdout=self._log, stderr=self._log, env=self._environment())

    def _environment(self) -> dict[str, str]:
        if not self.clock_can_jump:
            return dict(os.environ)
        return {**os.environ, "LD_PRELOAD": str(self.places.clock_library), "ENDURE_CLOCK": str(self.places.clock)}

    def set_clock(self, seconds: int) -> None:
        """Has the run's wall clock be off by so many seconds from now on."""
        with self.places.clock.open("r+b" if self.places.clock.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    @property
    def supervisor(self) -> int:
        """Its process."""
        return self._process.pid

    def mend(self) -> bool:
        """Starts it again if it has ended; whether it had done so by itself. Several threads may ask."""
        with self._mending:
            if self._process.poll() is None:
                return False
            self.statuses.append(self._process.returncode)
            by_itself, self._killed = not self._killed, False
            self._process = self._start()
            return by_itself

    def readings(self) -> list[WorkerReading]:
        """Of all workers that answer; none while it starts."""
        try:
            return Status(self.name).workers
        except (OSError, DataflowError):
            return []

    def await_workers(self, seconds: float = 120.0) -> list[WorkerReading]:
        """Waits until workers answer."""
        until = time.monotonic() + seconds
        while not (found := self.readings()):
            if time.monotonic() > until:
                raise TimeoutError(f"no worker of {self.name} answers; {self.places.log} has what it said")
            self.mend()
            time.sleep(0.2)
        return found

    def tell(self, *words: str) -> str:
        """A command for the run, as one gives it in a shell: what it said."""
        command = [sys.executable, "-m", "dataflow", words[0], self.name, *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
        said = (done.stdout + done.stderr).strip().splitlines()
        return f"{'' if done.returncode == 0 else 'refused: '}{said[-1] if said else ''}"

    def kill_all(self) -> None:
        """kill -9 to everything that belongs to it."""
        self._killed = True
        for pid in (*(reading.pid for reading in self.readings()), self.supervisor):
            kill(pid, signal.SIGKILL)
        self._process.wait()

    def kill_worker(self, pid: int) -> None:
        """kill -9 to one worker. Where there is one only, that is the whole run."""
        self._killed = pid == self.supervisor
        kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """Stops it for good."""
        self.tell("stop")
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._log.close()


def kill(pid: int, number: int) -> None:
    """Sends a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _build_clock(library: Path) -> bool:
    """Compiles the clock that can be off; whether there is a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        return False
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_CLOCK), "-ldl"], check=True)
    return True
