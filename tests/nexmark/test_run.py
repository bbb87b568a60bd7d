"""``python -m nexmark run`` and ``verify``, as a user meets them."""

import io
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dataflow.testing import simulate
from megaphone.harness.progress import ProgressBar
from nexmark.answers import oracle
from nexmark.commands import verify
from nexmark.commands.main import main
from nexmark.commands.options import LONGEST
from nexmark.events.config import SECOND, Config
from nexmark.events.generator import Generator
from nexmark.events.rows import rows
from nexmark.runs.running import RunPlan
from nexmark.runs.running import main as run_plan
from tests.launch.files import few_open_files
from tests.nexmark.runs import answer, rows_of

ROOT = Path(__file__).resolve().parents[2]


def expected(query: str, events: int, **windows: int) -> Counter[Any]:
    made = Generator(Config(seed=7, rate=1000)).events(range(events))
    return Counter(oracle.QUERIES[query]({kind: rows(table) for kind, table in made.items()}, **windows))


def in_file(path: Path) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in pq.read_table(path).to_pylist())


def test_a_real_run_with_moves_writes_rows_and_numbers(tmp_path: Path) -> None:
    moves = tmp_path / "moves.jsonl"
    moves.write_text('{"time": 1000000000, "bin": 3, "worker": 0}\n{"time": 2000000000, "map": [1, 1, 0, 0]}\n')
    command = ["run", "q8", "--events", "5,000", "--seed", "7", "--rate", "1000", "--bins", "4", "--batch", "500"]
    command += ["--window", "2", "--config", moves, "--output", tmp_path / "q8.parquet", "--json", tmp_path / "q8.json"]
    done = subprocess.run(
        [sys.executable, "-m", "nexmark", *command], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "q8, migratable, 2 workers: 5,000 events in " in done.stdout
    answer = expected("q8", 5000, window=2_000_000_000)
    assert in_file(tmp_path / "q8.parquet") == answer
    assert pq.read_schema(tmp_path / "q8.parquet").names == list(oracle.COLUMNS["q8"])
    document = json.loads((tmp_path / "q8.json").read_text())
    assert (document["events"], document["rows"], document["updates"]) == (5000, answer.total(), 2)
    assert document["events_per_second"] == document["events"] / document["seconds"]
    assert len(document["peak_memory_bytes"]) == 2 and document["setup_seconds"] > 0
    assert document["revision"] and document["command"].startswith("python -m nexmark run q8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moves.jsonl", "q8.json", "q8.parquet"]


@pytest.mark.parametrize("query", ["q3", "q5"])
def test_files_give_the_rows_that_generated_events_give(query: str, tmp_path: Path) -> None:
    folder, out = tmp_path / "events", tmp_path / "rows.parquet"
    assert main(["generate", "--events", "3000", "--seed", "7", "--rate", "1000", "--out", str(folder)]) == 0
    command = ["run", query, "--input", str(folder), "--variant", "native", "--workers", "1", "--output", str(out)]
    assert main([*command, "--batch", "100"]) == 0
    assert in_file(out) == expected(query, 3000)


def test_a_query_without_rows_writes_a_file_without_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    assert main(["run", "q7", "--events", "0", "--workers", "1", "--output", str(out)]) == 0
    assert pq.read_table(out).num_rows == 0


@pytest.mark.parametrize("command", ["run", "verify"])
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main([command, "--help"])
    assert exit.value.code == 0
    assert f"python -m nexmark {command} q5 --events" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["q1", "--events", "-1"], "--events is -1; with the other options it must be from 0 to"),
        (["q1", "--events", "1", "--workers", "0"], "--workers is 0; there must be at least one"),
        (["q1", "--events", "1", "--bins", "12"], "--bins is 12; it must be a power of two"),
        (["q1", "--events", "1", "--batch", "0"], "--batch is 0; an epoch has at least one event"),
        (["q1", "--events", "1", "--window", "5"], "q1 has no window; leave --window out"),
        (["q7", "--events", "1", "--slide", "5"], "q7 has no slide; leave --slide out"),
        (
            ["q5", "--events", "1", "--window", "5", "--slide", "2.5000001"],
            "the window of q5 must be a multiple of its slide: --window is 5 and --slide is 2.5000001 (seconds)",
        ),
        (["q5", "--events", "1", "--slide", "100"], "the window of q5 must be a multiple of its slide: --window is 60"),
        (["q5", "--events", "1", "--slide", "1e-9"], "the window of q5 must have fewer than 16,777,216 slides"),
        (["q5", "--events", "1", "--window", "0"], "--window is 0; it is a number of seconds above 0"),
        (["q5", "--events", "1", "--slide=-1"], "--slide is -1; it is a number of seconds above 0"),
        (["q8", "--events", "1", "--window", "1e-10"], "--window is 1e-10; it is a number of seconds above 0"),
        (["q8", "--events", "0", "--rate", "1e-300", "--in-flight", "0"], "at 1e-300 events per second, 0 auctions"),
        (["q4", "--input", "x", "--rate", "1e6", "--seed", "0"], "--seed, --rate: for events that are generated, and"),
        (["q1", "--input", "nowhere"], "--input nowhere: nowhere has no bid.parquet; make them by"),
        (["q1", "--events", "1", "--json", "nowhere/x.json"], "cannot write to nowhere/x.json: No such file"),
        (["q1", "--events", "1", "--config", "nowhere"], "cannot read --config nowhere: No such file"),
    ],
)
def test_nonsense_is_refused(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *options]) == 2
    assert f"python -m nexmark run: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "line 1 is not JSON"),
        ('{"time": 1, "bin": 256, "worker": 0}', "there is no bin 256: there are 256"),
        ('{"time": 1, "bin": 0, "worker": 2}', "there is no worker 2: there are 2"),
        ('{"time": 1, "map": [0, 1]}', "a map of 2 bins, and the operator has 256"),
        ('{"time": -1, "bin": 0, "worker": 1}', "line 1, at time -1: the first time is 0"),
    ],
)
def test_a_bad_configuration_is_refused_before_anything_runs(
    line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "moves.jsonl", tmp_path / "rows.parquet"
    file.write_text(line + "\n")
    assert main(["run", "q1", "--events", "1000", "--config", str(file), "--output", str(out)]) == 2
    told = capsys.readouterr().err
    assert message in told and "Nothing was run" in told
    assert not out.exists()


def test_native_operators_cannot_be_configured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "moves").write_text("")
    assert main(["run", "q1", "--events", "1", "--variant", "native", "--config", str(tmp_path / "moves")]) == 2
    assert "native operators cannot" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["q23", "--events", "1"], ["q1"], ["q1", "--events", "1", "--input", "x"], []])
def test_misuse_of_the_command_line_exits_with_2(options: list[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["run", *options])
    assert exit.value.code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["run", "q5", "--events", "1", "--window", "nan"], "--window: 'nan' is not a finite number"),
        (["run", "q7", "--events", "1", "--window", "inf"], "--window: 'inf' is not a finite number"),
        (["run", "q7", "--events", "1", "--window", "1e300"], "--window: '1e300' is too large: numbers are below 2^64"),
        (["run", "q7", "--events", "1", "--window", "2.4e9"], "--window: '2.4e9' is too long: times end after 2,305,"),
        (["run", "q5", "--events", "1", "--slide=-inf"], "--slide: '-inf' is not a finite number"),
        (["run", "q1", "--events", "1", "--rate", "nan"], "--rate: 'nan' is not a finite number"),
        (["run", "q1", "--events", "1e30"], "--events: '1e30' is too large"),
        (["run", "q1", "--events", "9" * 400], "is too large: numbers are below 2^64"),
        (["verify", "q5", "--events", "1", "--window", "nan"], "--window: 'nan' is not a finite number"),
        (["latency", "q8", "--rate", "1", "--duration", "inf"], "--duration: 'inf' is not a finite number"),
        (["latency", "q8", "--rate", "1", "--duration", "nan"], "--duration: 'nan' is not a finite number"),
        (["latency", "q8", "--rate", "1", "--duration", "1e10"], "--duration: '1e10' is too long"),
        (["latency", "q8", "--epoch-ms", "nan"], "--epoch-ms: 'nan' is not a finite number"),
        (["latency", "q8", "--epoch-ms", "inf"], "--epoch-ms: 'inf' is not a finite number"),
        (["latency", "q8", "--at", "1", "nan"], "--at: 'nan' is not a finite number"),
        (["demo", "--duration", "nan"], "--duration: 'nan' is not a finite number"),
        (["generate", "--rate", "inf"], "--rate: 'inf' is not a finite number"),
    ],
)
def test_numbers_that_are_none_are_refused_and_the_option_is_named(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(options)
    assert exit.value.code == 2
    assert message in capsys.readouterr().err


def test_the_longest_windows_and_epochs_that_times_can_express() -> None:
    """Every sum of a time, a window and an epoch has less than 63 bits, and the query runs with them."""
    config, window = Config(rate=1e-6, in_flight=1), LONGEST * SECOND
    plan = RunPlan("q8", config, events=3, batch=1 << 60, windows={"q8_window": window}, keep=True)
    assert config.time_of(3) + window + plan.source().grid < 2**63
    assert rows_of(simulate(run_plan, plan, workers=1, seed=1)) == answer(plan, {"window": window}) != Counter()


def test_updates_for_times_after_the_last_epoch_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moves = tmp_path / "moves.jsonl"
    times = (0, 2_000_000, 2_000_001, 10**12)
    moves.write_text("".join(f'{{"time": {time}, "bin": 0, "worker": 0}}\n' for time in times))
    command = ["run", "q1", "--events", "30", "--rate", "10000", "--batch", "10", "--workers", "1"]
    assert main([*command, "--config", str(moves)]) == 0
    assert capsys.readouterr().err == (
        f"2 of 4 updates of --config {moves} were never reached: the last epoch began at 2,000,000 ns of event time "
        "(an epoch has 10 events, see --batch)\n"
    )


def test_too_many_workers_for_the_limit_of_open_files(capsys: pytest.CaptureFixture[str]) -> None:
    with few_open_files():
        assert main(["run", "q1", "--events", "10", "--workers", "200"]) == 2
    assert "python -m nexmark run: 200 workers on one host need 607 more open files" in capsys.readouterr().err


def test_verify_says_that_rows_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["verify", "q7", "--events", "3000", "--rate", "1000", "--workers", "1", "--against", "oracle"]
    assert main([*command, "--batch", "100", "--window", "0.5"]) == 0
    told = capsys.readouterr().out
    assert "the plain program: 6 rows" in told
    assert "native: the same rows" in told
    assert "migratable, 20 random migrations: the same rows" in told


def test_verify_says_what_differs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An engine that loses a row and invents another is found out."""
    honest = verify._rows

    def lies(plan: Any, workers: int) -> Any:
        rows = honest(plan, workers)
        return rows if plan.variant == "native" else rows - Counter([next(iter(rows))]) + Counter([(1, 2, 3, 4)])

    monkeypatch.setattr(verify, "_rows", lies)
    command = ["verify", "q7", "--events", "500", "--rate", "1000", "--workers", "1", "--against", "oracle"]
    assert main(command) == 1
    told = capsys.readouterr().out
    assert "native: the same rows" in told
    assert "migratable, 20 random migrations: DIFFERENT, 1 row is missing, 1 row should not be there:" in told
    assert "extra:   window_end=1, auction=2, bidder=3, price=4" in told


def test_progress_of_workers_is_whole_lines() -> None:
    stream = io.StringIO()
    times = iter([0.0, 10.0, 20.0])
    progress = ProgressBar("running", 4, stream, lambda: next(times), width=4, lines=True, terminal=True)
    progress.advance(1)
    progress.advance(1)
    progress.finish()
    assert stream.getvalue() == "\x1b[Krunning █░░░  25%, 30 s left\n\x1b[A\x1b[Krunning ██░░  50%, 20 s left\n"
