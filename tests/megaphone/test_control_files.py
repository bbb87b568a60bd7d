"""Control from files and pipes of JSON lines: a line that makes no sense is refused to whoever sent it, the
configuration stays as it was, and what comes after is taken."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

import dataflow
import megaphone
from dataflow.testing import simulate
from tests.engine.harness import failsafe

BINS, WORKERS = 4, 2
GOOD = '{"time": 5, "bin": 3, "worker": 0}'
BAD = [
    ("move it", "is not JSON"),
    ('{"time": 5, "bin": 3', "is not JSON"),
    ("[" * 100_000, "is not JSON"),
    ("[1, 2]", "no integer time"),
    ('{"bin": 3, "worker": 1}', "no integer time"),
    ('{"time": 5.5, "bin": 3, "worker": 1}', "no integer time"),
    ('{"time": true, "bin": 3, "worker": 1}', "no integer time"),
    ('{"time": 5, "bin": 3}', "neither a move nor a map"),
    ('{"time": 5, "bin": 3, "worker": 1, "why": "heat"}', "neither a move nor a map"),
    ('{"time": 5, "map": 7}', "neither a move nor a map"),
    ('{"time": 5, "map": "0101"}', "neither a move nor a map"),
    ('{"time": 5, "map": [0, 1]}', "a map of 2 bins, and the operator has 4"),
    ('{"time": 5, "map": [0, 1, 2, 0]}', "no worker 2"),
    ('{"time": 5, "map": [0, 1, 0.5, 0]}', "not the number of a worker"),
    ('{"time": 5, "map": [0, 1, null, 0]}', "not the number of a worker"),
    ('{"time": 5, "map": [[0], [1, 0], 1, 0]}', "not the number of a worker"),
    ('{"time": 5, "map": [0, 1, 99999999999999999999999, 0]}', "number of a worker|no worker"),
    ('{"time": 5, "bin": 4, "worker": 1}', "no bin 4: there are 4, from 0 to 3"),
    ('{"time": 5, "bin": -1, "worker": 1}', "no bin -1"),
    ('{"time": 5, "bin": "3", "worker": 1}', "'3' is not a bin: say its first bits and a star, as in '0110\\*'"),
    ('{"time": 5, "bin": "011*", "worker": 1}', "there is no bin '011\\*': the finest of 4 bins have 2 bits"),
    ('{"time": 5, "split": "00*"}', "00\\* cannot be split into 2 bins: the operator has 4 bins at the finest, and 1"),
    ('{"time": 5, "split": "0*", "into": 3}', "split into 2, 4, 8 or another power of two, not into 3"),
    ('{"time": 5, "split": 1}', "1 is not a bin: say its first bits"),
    ('{"time": 5, "merge": "x"}', "'x' is not a bin: say its first bits"),
    ('{"time": 5, "merge": "0*", "worker": 9}', "there is no worker 9"),
    ('{"time": 5, "bin": 3, "worker": 2}', "no worker 2"),
    ('{"time": 5, "bin": 3, "worker": NaN}', "nan is not the number of a worker"),
]
ids = [f"{number}: {line[:40]}" for number, (line, _) in enumerate(BAD)]


# ------------------------------------------------------------------------------------------------------------- a file


@pytest.mark.parametrize(("bad", "complaint"), BAD, ids=ids)
def test_a_bad_line_of_a_file_is_named_and_nothing_is_used(bad: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "moves.jsonl"
    path.write_text(f"{GOOD}\n\n{bad}\n{GOOD}\n")
    with pytest.raises(megaphone.ControlError, match=complaint) as caught:
        megaphone.read_control(path, BINS, WORKERS)
    assert "line 3" in str(caught.value) and str(path) in str(caught.value), "whose line it is, and which"


def test_a_time_before_the_first_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "moves.jsonl"
    path.write_text(f'{GOOD}\n{{"time": -1, "bin": 0, "worker": 1}}\n')
    with pytest.raises(megaphone.ControlError, match=f"^{path}: line 2, at time -1: the first time is 0$"):
        megaphone.read_control(path, BINS, WORKERS)


def test_a_file_of_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "moves.jsonl"
    path.write_bytes(GOOD.encode() + b"\n\xff\xfe\x00\n")
    with pytest.raises(megaphone.ControlError, match="line 2 is not JSON"):
        megaphone.read_control(path, BINS, WORKERS)


def count(time: int, records: list[Any], state: dict[Any, int], notificator: Any) -> Any:
    for key in records:
        state[key] = state.get(key, 0) + 1
    yield from ((key, state[key]) for key in set(records))


def test_a_file_drives_a_migration(tmp_path: Path) -> None:
    path = tmp_path / "moves.jsonl"
    lines = [{"time": 3, "map": [1, 0, 1, 0]}, {"time": 5, "bin": 0, "worker": 0}, {"time": 5, "bin": 1, "worker": 1}]
    path.write_text("\n".join(map(json.dumps, lines)))

    async def main(worker: dataflow.Worker) -> Any:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            data, stream = scope.input("data")
            counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=BINS)
            probe = counts.probe()
        if worker.index == 0:
            for time, update in megaphone.read_control(path, BINS, worker.peers):
                control.send([update], at=time)
        for time in range(8):
            data.send([time])
            data.advance_to(time + 1)
            control.advance_to(time + 1)
            await probe.wait_passed(time)
            seen.append(tuple(counts.handle.configuration.tolist()))
        return seen

    expected = [(0, 1, 0, 1)] * 3 + [(1, 0, 1, 0)] * 2 + [(0, 1, 1, 0)] * 3
    for seed in range(3):
        assert simulate(main, workers=2, seed=seed) == [expected] * 2


# ------------------------------------------------------------------------------------------------------------- a pipe


@contextmanager
def writing(path: Path, content: bytes) -> Iterator[None]:
    """Somebody else, who writes to a pipe as soon as it is read, and then closes it."""
    os.mkfifo(path)
    (path.parent / "content").write_bytes(content)
    writer = subprocess.Popen(["sh", "-c", 'exec cat content > "$0"', path.name], cwd=path.parent)
    try:
        with failsafe(30):
            yield
    finally:
        writer.kill()
        writer.wait()


async def piped(worker: dataflow.Worker, path: Path, times: int) -> Any:
    """Worker 0 follows a pipe until that ends; then both go on. The configuration, what came out, what was refused."""
    out: list[Any] = []
    refused: list[Any] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=BINS)
        probe = counts.inspect(lambda t, r: out.append(r)).probe()
    before = counts.handle.configuration.tolist()
    for handle in (control, data):
        handle.advance_to(2)  # the past
    if worker.index == 0:
        tell = lambda error, line: refused.append((str(error), line))  # noqa: E731
        await megaphone.follow(control, path, tell, until_end=True)
    assert counts.handle.configuration.tolist() == before, "nothing is final yet"
    for time in range(2, times):
        data.send([time])
        data.advance_to(time + 1)
        control.advance_to(time + 1)
        await probe.wait_passed(time)
    return counts.handle.configuration.tolist(), out, refused


@pytest.mark.parametrize("in_process", [True, False], ids=["one process", "processes"])
def test_bad_lines_of_a_pipe_are_refused_and_the_good_ones_taken(in_process: bool, tmp_path: Path) -> None:
    """Every bad line, each before a good one; one that comes too late; bytes that are no text; no last newline."""
    bad = [*BAD, ('{"time": 1, "bin": 1, "worker": 0}', "is at 2 already"), ("\udcff\udcfe\0", "is not JSON")]
    good = '{"time": 7, "map": [1, 1, 0, 0]}'
    lines = [line for broken, _ in bad for line in (broken, GOOD)]
    content = "\n".join([*lines, "", good]).encode(errors="surrogateescape")
    with writing(tmp_path / "pipe", content):
        results = dataflow.execute(piped, tmp_path / "pipe", 10, workers=WORKERS, in_process=in_process)
    refused = results[0][2]
    assert len(refused) == len(bad)
    for (error, line), (broken, complaint) in zip(refused, bad, strict=True):
        assert re.search(complaint, error), error
        assert line == broken or "\udcff" in broken
        assert len(error) < 1000, "a message for people"
    assert [configuration for configuration, *_ in results] == [[1, 1, 0, 0]] * WORKERS
    assert sorted(row for _, out, _ in results for row in out) == [(time, 2) for time in range(2, 10)]


def test_a_refused_line_changes_nothing(tmp_path: Path) -> None:
    with writing(tmp_path / "pipe", b'{"time": 5, "map": [1, 1, 1]}\n{"time": 5, "bin": 0, "worker": 7}\n'):
        results = dataflow.execute(piped, tmp_path / "pipe", 10, workers=WORKERS, in_process=True)
    assert [configuration for configuration, *_ in results] == [[0, 1, 0, 1]] * WORKERS
    assert len(results[0][2]) == 2


def test_without_somebody_to_tell_a_refusal_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, _ = scope.input("control")
        await megaphone.follow(control, tmp_path / "pipe", until_end=True)

    with writing(tmp_path / "pipe", b"move it\n"):
        dataflow.execute(main, workers=1)
    assert capsys.readouterr().err.startswith("refused: move it: ")


@pytest.mark.parametrize("begun", [None, b'{"time": 5, "bin"'], ids=["nobody writes", "somebody stops writing"])
def test_whoever_waits_for_a_pipe_can_be_cancelled(begun: bytes | None, tmp_path: Path) -> None:
    """Main is done, cancels the follower and ends, whoever may have the other end of the pipe."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    other = os.open(path, os.O_RDWR | os.O_NONBLOCK) if begun is not None else None
    if other is not None and begun is not None:
        os.write(other, begun)

    async def main(worker: dataflow.Worker) -> str:
        with worker.dataflow() as scope:
            control, _ = scope.input("control")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(megaphone.follow, control, path)
            await trio.testing.wait_all_tasks_blocked(0.05)
            nursery.cancel_scope.cancel()
        return "done"

    with failsafe(20):
        assert dataflow.execute(main, workers=1) == ["done"]
    if other is not None:
        os.close(other)
