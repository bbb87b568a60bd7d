"""The whole test suite, folder by folder, several folders at a time: `python -m tests.together`.

Many tests wait for processes, servers and the end of a limit of time, so one folder more than there are processors is
tested at a time. What takes longest begins first. A folder has one line when it has ended, and its whole output if
something failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("dataflow", "megaphone", "planners", "nexmark", "bench")  # for their doctests
LONGEST = (
    "launch", "megaphone", "nexmark", "state", "spark", "members", "plans", "planners", "kills", "connectors",
    "crashes", "comm",
)  # fmt: skip
_NOTHING_COLLECTED = 5  # pytest's exit status


@dataclass(frozen=True, slots=True)
class Tested:
    """How the tests of one folder went."""

    folder: str
    status: int
    output: str
    seconds: float

    @property
    def last_line(self) -> str:
        """What pytest says in the end."""
        return (self.output.strip().splitlines() or ["nothing"])[-1].strip("= ")


def folders() -> list[str]:
    """Every folder with tests, those that take longest first; then the packages."""
    found = [path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.rglob("*.py"))]
    ordered = [name for name in LONGEST if name in found]
    rest = sorted(set(found) - set(ordered), key=lambda name: -len(list((ROOT / "tests" / name).rglob("*.py"))))
    single = [f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("test_*.py"))]
    return [*(f"tests/{name}" for name in (*ordered, *rest)), *single, *PACKAGES]


def run_folder(folder: str) -> Tested:
    """Runs pytest on one folder, in a process of its own."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", folder]
    with tempfile.TemporaryFile() as output:
        status = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Tested(folder, 0 if status == _NOTHING_COLLECTED else status, text, time.monotonic() - began)


def run_all(names: list[str], at_once: int) -> Iterator[Tested]:
    """Runs all of them; each as it ends."""
    with ThreadPoolExecutor(at_once) as pool:
        running: list[Future[Tested]] = [pool.submit(run_folder, name) for name in names]
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def main(arguments: list[str]) -> int:
    """Tests all folders, or those that are named; the exit status says whether all passed."""
    began = time.monotonic()
    failed = []
    for tested in run_all(arguments or folders(), (os.cpu_count() or 1) + 1):
        if tested.status:
            failed.append(tested)
            print(tested.output, flush=True)
        print(f"{tested.folder}: {tested.last_line} ({tested.seconds:.0f} s)", flush=True)
    for tested in failed:
        print(f"FAILED {tested.folder}, exit status {tested.status}: {tested.last_line}")
    print(f"{'failed' if failed else 'all passed'}, {time.monotonic() - began:.0f} s in all")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
