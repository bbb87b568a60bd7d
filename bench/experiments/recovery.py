"""From kill -9 to the next correct output, by size of state; and stop-and-restart as the rival of live migration."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from bench.killing import SaidLine, WatchedProgram, ours
from bench.registry import benchmark
from bench.run import Run

MILLION = 1_000_000


@benchmark("recovery", "from kill -9 to the next correct output, by size of state; beside Bytewax if installed")
def recovery(run: Run) -> None:
    sizes = (1,) if run.quick else (1, 16, 64)
    cases = [(million, every) for million in sizes for every in ((1.0,) if run.quick else (1.0, 10.0))]
    for million, every in run.each("sizes of state", cases):
        _worker_killed(run, million, every)
        _all_killed(run, million, every)
    if find_spec("bytewax") is None:
        run.tell("Bytewax is not installed: `pip install bytewax` to have it measured by the same script")
        return
    for keys in run.each("Bytewax", (50_000,) if run.quick else (50_000, 200_000, 950_000)):
        _bytewax(run, keys)


def _settle(running: WatchedProgram, every: float) -> None:
    """Waits until everything is loaded and some of what came after it has been shown, by two snapshots."""
    first = SaidLine(running.wait(lambda line: line.startswith("shown")))
    running.wait(lambda line: line.startswith("shown") and SaidLine(line).at > first.at + every / 2)


def _last(running: WatchedProgram, kind: str) -> int:
    return max(SaidLine(line).epoch for line in running.lines if line.startswith(kind))


def _after(running: WatchedProgram, kind: str, epoch: int, since: int) -> SaidLine:
    """The first line of the next life about a later epoch than any of the life before."""
    running.wait(lambda line: line.startswith("began"), since)
    began = next(i for i in range(since, len(running.lines)) if running.lines[i].startswith("began"))
    before = [SaidLine(line).epoch for line in running.lines[since:began] if line.startswith(kind)]
    last = max([epoch, *before])
    return SaidLine(running.wait(lambda line: line.startswith(kind) and SaidLine(line).epoch > last, began))


def _worker_killed(run: Run, million: int, every: float) -> None:
    """One worker is killed: the supervisor has the others roll back, and replaces it."""
    with tempfile.TemporaryDirectory() as folder, ours(million * MILLION, every, folder) as running:
        _settle(running, every)
        done, shown, since = _last(running, "done"), _last(running, "shown"), len(running.lines)
        at = time.time()
        os.kill(_workers(running.process.pid)[-1], signal.SIGKILL)
        label = f"{million} M keys, a snapshot every {every:g} s, one of two workers killed"
        _report(run, label, at, running, (done, shown, since), folder)


def _all_killed(run: Run, million: int, every: float) -> None:
    """All processes are killed, and the same command is started at once."""
    with tempfile.TemporaryDirectory() as folder:
        with ours(million * MILLION, every, folder) as first:
            _settle(first, every)
            at = first.kill()
            marks = _last(first, "done"), _last(first, "shown"), 0
        with ours(million * MILLION, every, folder) as running:
            _report(
                run,
                f"{million} M keys, a snapshot every {every:g} s, all killed and started again",
                at,
                running,
                marks,
                folder,
            )


def _report(run: Run, label: str, at: float, running: WatchedProgram, marks: tuple[int, int, int], folder: str) -> None:
    done, shown, since = marks
    processed, visible = _after(running, "done", done, since), _after(running, "shown", shown, since)
    wrong = sum(SaidLine(line).wrong for line in running.lines[since:] if line[:5] in ("done ", "shown"))
    if wrong:
        raise AssertionError(f"{label}: {wrong} counts are wrong after the recovery")
    size = _state_size(Path(folder))
    aim = 1.0 + size / 1e9
    began = next(SaidLine(line) for line in running.lines[since:] if line.startswith("began"))
    run.report(f"{label}: state", size / (1 << 20), "MiB")
    run.report(f"{label}: until main begins again", began.at - at, "s")
    run.report(f"{label}: the next correct count", processed.at - at, "s", baseline=aim)
    run.report(f"{label}: shown by a sink", visible.at - at, "s", baseline=aim)


def _state_size(folder: Path) -> int:
    """The bytes of the files that the newest manifest names."""
    newest = max(folder.rglob("manifest-*"), key=lambda path: path.name)
    return sum(file["size"] for file in json.loads(newest.read_bytes().partition(b"\n")[0])["files"])


def _workers(supervisor: int) -> list[int]:
    """Forks of the zygote, oldest first."""
    (zygote, *_) = _children(supervisor)
    return _children(zygote)


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def _bytewax(run: Run, keys: int) -> None:
    """The same for Bytewax: stop and restart from its own store, which is all that it offers."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "bytewax.recovery", folder, "2"], check=True)
        command = [sys.executable, "-m", "bytewax.run", "bench.rivals.bytewax_count:flow()"]
        command += ["-r", folder, "-s", "1", "-b", "0", "-w", "2"]
        first = WatchedProgram(command, {"RIVAL_KEYS": str(keys)})
        loaded = first.wait(lambda line: int(line.split()[1]) >= keys)
        first.wait(lambda line: float(line.split()[0]) > float(loaded.split()[0]) + 3.0)
        number = max(int(line.split()[1]) for line in first.lines)
        at = first.kill()
        again = WatchedProgram(command, {"RIVAL_KEYS": str(keys)})
        found = again.wait(lambda line: int(line.split()[1]) > number)
        again.kill()
        if any("WRONG" in line for line in again.lines):
            run.tell(f"Bytewax, {keys:,} keys: some counts are wrong after the restart")
        run.report(
            f"Bytewax, {keys:,} keys, killed and started again: the next count", float(found.split()[0]) - at, "s"
        )
