"""Programs that benchmarks start, read while they run, and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PATIENCE = 600.0  # seconds after which a run is given up


class SaidLine:
    """What a run has said about an epoch."""

    def __init__(self, text: str) -> None:
        kind, at, epoch, wrong = text.split()
        self.kind, self.at, self.epoch, self.wrong = kind, float(at), int(epoch), int(wrong)


class WatchedProgram:
    """A program whose lines are read while it runs."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True, start_new_session=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def wait(self, found: Callable[[str], bool], since: int = 0) -> str:
        """The first line, from a number on, that is what somebody waits for."""
        deadline, at = time.monotonic() + PATIENCE, since
        while time.monotonic() < deadline:
            while at < len(self.lines):
                if found(self.lines[at]):
                    return self.lines[at]
                at += 1
            if self.process.poll() is not None and at == len(self.lines):
                raise RuntimeError(f"it ended with status {self.process.returncode}")
            time.sleep(0.002)
        raise TimeoutError(f"nothing came in {PATIENCE:g} s")

    def kill(self) -> float:
        """Kills all of it; when."""
        at = time.time()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return at


@contextmanager
def ours(keys: int, every: float, folder: str, workers: int = 2, migrate: float = 0.0) -> Iterator[WatchedProgram]:
    """The count of `bench.recovering`, under way; `migrate`: half of one worker's bins move so many seconds after all
    keys are loaded."""
    arguments = [str(keys), folder, str(every), str(workers), str(migrate)]
    running = WatchedProgram([sys.executable, "-m", "bench.recovering", *arguments])
    try:
        yield running
    finally:
        running.kill()
