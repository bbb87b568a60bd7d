"""``python -m nexmark generate``, as a user meets it."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from megaphone.harness.progress import ProgressBar
from nexmark.commands import generate
from nexmark.commands.main import main
from nexmark.events import files
from nexmark.events.config import Config
from nexmark.events.generator import Generator
from nexmark.events.rows import rows

ROOT = Path(__file__).resolve().parents[2]


def test_a_real_run_writes_files_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "nexmark",
            "generate",
            "--events",
            "1,000",
            "--seed",
            "7",
            "--rate",
            "1e4",
            "--out",
            out,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert f"{out / 'bid.parquet'}: 920 rows" in done.stdout
    assert "1,000 events in " in done.stdout
    expected = Generator(Config(seed=7, rate=10_000)).events(range(1000))
    assert {kind: rows(table) for kind, table in files.read(out).items()} == {
        kind: rows(table) for kind, table in expected.items()
    }


@pytest.mark.parametrize("command", [[], ["generate"]])
def test_help_teaches(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main([*command, "--help"])
    assert exit.value.code == 0
    text = capsys.readouterr().out
    expected = "--events 1000000 --rate 10000 --seed 7 --out events" if command else "python -m nexmark COMMAND --help"
    assert expected in text


def test_every_option_reaches_the_generator(tmp_path: Path) -> None:
    options = {"seed": 3, "rate": 0.5, "group": 3, "base_time": 5, "in_flight": 6, "active_people": 7, "persons": 2}
    options |= {"auctions": 4, "bids": 8, "hot_seller_ratio": 9, "hot_auction_ratio": 10, "hot_bidder_ratio": 11}
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert main(["generate", "--events", "100", "--out", str(tmp_path), "--payload", "full", *words]) == 0
    expected = Generator(Config(**options), payload="full").events(range(100))  # type: ignore[arg-type]
    for kind, table in expected.items():
        assert files.pq.read_table(tmp_path / f"{kind}.parquet").to_pylist() == rows(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--events", "-1"], "--events is -1; with the other options it must be from 0 to"),
        (["--events", "10", "--rate", "0"], "--rate is 0; it must be a number of events per second above 0"),
        (["--events", "10", "--hot-bidder-ratio", "0"], "--hot-bidder-ratio is 0; it must be from 1"),
        (["--events", "10", "--group", "953"], "--group is 953, a multiple of 953"),
        (["--events", "99999999999", "--rate", "0.1"], "--events is 99999999999; with the other options"),
    ],
)
def test_nonsense_is_refused_before_anything_is_written(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "--out", str(tmp_path / "events"), *options]) == 2
    assert f"python -m nexmark generate: {message}" in capsys.readouterr().err
    assert not (tmp_path / "events").exists()


@pytest.mark.parametrize(
    "options",
    [[], ["nonsense"], ["generate"], ["generate", "--events", "many", "--out", "x"], ["generate", "--out", "x"]],
)
def test_misuse_of_the_command_line_exits_with_2(options: list[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(options)
    assert exit.value.code == 2


def test_files_are_replaced_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", "--out", str(tmp_path), "--events"]
    assert main([*command, "10"]) == 0
    assert main([*command, "20"]) == 2
    assert "person.parquet is there already; add --overwrite" in capsys.readouterr().err
    assert main([*command, "20", "--overwrite"]) == 0
    assert len(files.read(tmp_path)["bid"]["event"]) == 16


def test_a_file_is_not_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events").write_text("")
    assert main(["generate", "--events", "1", "--out", str(tmp_path / "events")]) == 2
    assert "events is a file; name a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(OSError(28, "No space left on device"), 1, "cannot write to"), (KeyboardInterrupt(), 130, "interrupted")],
)
def test_what_goes_wrong_half_way_has_its_exit_code(
    error: BaseException,
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(generate.files, "write", fail)
    assert main(["generate", "--events", "10", "--out", str(tmp_path)]) == code
    assert message in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_rare_lines_elsewhere() -> None:
    for stream, expected in (
        (Terminal(), "\r\x1b[Kgenerating ███░░░  50%, 15 s left\r\x1b[K"),
        (io.StringIO(), "generating: 50%, 15 s left\n"),
    ):
        times = iter([0.0, 0.05, 15.0, 15.05])
        progress = ProgressBar("generating", 4, stream, clock=lambda times=times: next(times), width=6)  # type: ignore[misc]
        for _ in range(3):
            progress.advance(1 if stream.getvalue() == "" else 0)
        progress.finish()
        assert stream.getvalue() == expected
