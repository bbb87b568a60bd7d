"""Standard input and output, of real programs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = textwrap.dedent(
    """
    import sys
    import dataflow
    from dataflow import sinks, sources
    from dataflow.state import native

    def count(word, one, total):
        total = (total or 0) + one
        return total, [(word, total)]

    async def main(worker, recovery, tripped):
        with worker.dataflow() as scope:
            source = sources.stdin(batch=2)
            if recovery:
                import pathlib
                if recovery == "journal":
                    source = sources.journaled(source, "journal")
            lines = scope.source(source)
            def trip(line):
                import pathlib, time
                if recovery and line == "stop here" and not pathlib.Path(tripped).exists():
                    time.sleep(0.3)  # so that there is a snapshot to go on from, or there is none: both must do
                    pathlib.Path(tripped).touch()
                    raise RuntimeError("tripped on purpose")
                return [(word, 1) for word in line.split()]
            totals = native.state_machine(lines.flat_map(trip), fold=count, name="totals")
            totals.sink(sinks.stdout())

    if __name__ == "__main__":
        workers, recovery = int(sys.argv[1]), sys.argv[2]
        kept = dataflow.Recovery("state", every=0.05) if recovery != "none" else None
        dataflow.execute(main, "" if recovery == "none" else recovery, "tripped", workers=workers, recovery=kept)
    """
)


def run(folder: Path, workers: int, recovery: str, **options: object) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "app.py", str(workers), recovery],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,  # type: ignore[call-overload]
    )


TEXT = "one two\ntwo\nstop here\nthree three\nno end"
COUNTS = {"one": 1, "two": 2, "stop": 1, "here": 1, "three": 2, "no": 1, "end": 1}
ONCE = {f'["{word}", {total}]' for word, count in COUNTS.items() for total in range(1, count + 1)}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_pipe_through_a_program(workers: int, tmp_path: Path) -> None:
    ended = run(tmp_path, workers, "none", input=TEXT)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == sorted(ONCE)


def test_with_recovery_a_pipe_needs_a_journal(tmp_path: Path) -> None:
    ended = run(tmp_path, 2, "bare", input=TEXT)
    assert ended.returncode != 0
    assert "<standard input> cannot be set to where it was" in ended.stderr
    ended = run(tmp_path, 2, "journal", input=TEXT)
    assert ended.returncode == 0, ended.stderr
    assert "tripped on purpose" in ended.stderr
    assert set(ended.stdout.splitlines()) == ONCE


def test_a_file_goes_on_by_itself(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text(TEXT)
    with open(tmp_path / "lines.txt") as file:
        ended = run(tmp_path, 2, "bare", stdin=file)
    assert ended.returncode == 0, ended.stderr
    assert "tripped on purpose" in ended.stderr
    assert set(ended.stdout.splitlines()) == ONCE
