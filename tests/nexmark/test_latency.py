"""Queries under open-loop load: the rows are right whatever moves meanwhile, and ``python -m nexmark latency``."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataflow
from dataflow.testing import simulate
from megaphone.harness import Outcome
from nexmark.answers import oracle
from nexmark.commands.latency import title_of
from nexmark.commands.main import main as command
from nexmark.events.config import Config
from nexmark.events.rows import rows
from nexmark.queries.queries import PAPERS
from nexmark.runs.measuring import EpochFeed, LoadPlan, half_moved, main
from nexmark.runs.running import Job, RunPlan, readable
from tests.nexmark.runs import rows_of


def expected(load: LoadPlan) -> Counter[Any]:
    generator = load.generator()
    from nexmark.events.generator import Generator

    events = Generator(generator.config).events(range(load.preload + load.schedule(1).records))
    return Counter(oracle.QUERIES[load.plan.query]({kind: rows(table) for kind, table in events.items()}))


@pytest.mark.parametrize("query", PAPERS)
def test_rows_are_right_under_load_while_bins_move(query: str) -> None:
    load = LoadPlan(
        RunPlan(query, Config(seed=3, in_flight=20), bins=8, keep=True),
        rate=3000, duration=0.4, epoch=0.01, dilation=7, preload=500,
        migrations=[(0.05, "fluid"), (0.15, "batched"), (0.25, "all-at-once"), (0.3, "matched")], batch_bins=2,
    )  # fmt: skip
    seen = simulate(main, load, workers=2, seed=5)
    assert rows_of(seen) == expected(load)
    outcome = Outcome.of([each.recording for each in seen])
    assert outcome.sustained
    names = [migration.episode.name for migration in outcome.migrations]
    assert names == ["fluid", "batched", "all-at-once", "matched"]
    assert all(migration.episode.end is not None for migration in outcome.migrations)


@pytest.mark.parametrize("query", ["q4", "q8"])
def test_rows_are_right_under_load_while_workers_come_and_go(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Counter[Any]()  # whoever leaves returns nothing
    monkeypatch.setattr(Job, "_take", lambda _job, _time, batch: out.update(readable(batch).rows()))
    load = LoadPlan(
        RunPlan(query, Config(seed=3, in_flight=20), bins=8, keep=True),
        rate=3000, duration=0.6, epoch=0.01, dilation=7, preload=500, batch_bins=2,
        migrations=[(0.05, "fluid"), (0.1, "batched")], scalings=[(0.2, 4), (0.4, 2)], scale_by="fluid",
    )  # fmt: skip
    seen = [each for each in simulate(main, load, workers=2, seed=5) if each is not None]
    assert out == expected(load)
    outcome = load.outcome(seen, 0)
    names = [migration.episode.name for migration in outcome.migrations]
    assert names == ["fluid", "batched", "2 to 4 workers", "4 to 2 workers"]
    assert [change.name for each in seen for change in each.scaled] == names[2:]


def test_a_run_may_end_while_workers_come() -> None:
    """Or with more workers than it began with, of whom some were never asked to leave."""
    plan = RunPlan("q8", Config(seed=3), bins=8)
    for at in (0.05, 0.285, 0.299):
        load = LoadPlan(plan, rate=3000, duration=0.3, epoch=0.01, dilation=7, scalings=[(at, 3)])
        seen = [each for each in simulate(main, load, workers=1, seed=7) if each is not None]
        assert load.outcome(seen, 0).sustained


def test_what_is_loaded_before_is_there_when_the_clock_starts() -> None:
    config = Config(persons=5, auctions=5, bids=0, active_people=1000)
    load = LoadPlan(RunPlan("q8", config, bins=4), rate=1000, duration=0.05, epoch=0.01, preload=2000)
    seen = simulate(main, load, workers=2, seed=1)
    assert 1000 <= sum(each.keys for each in seen) <= 1011  # and some who sell before they register
    assert sum(each.final_keys for each in seen) > sum(each.keys for each in seen)


def test_half_of_one_workers_bins_move() -> None:
    home = [bin % 3 for bin in range(64)]
    moved = half_moved(home)
    assert np.bincount(moved).tolist() == [11, 32, 21]
    assert all(there == 1 for here, there in zip(home, moved, strict=True) if here != there)


class Sent:
    """In the place of a job: what is sent, and when."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.inputs: dict[str, Any] = {}

    def send(self, events: Any) -> None:
        self.sent += [(kind, table["id"].tolist()) for kind, table in events.items()]


def test_epochs_that_are_late_are_sent_as_one() -> None:
    job: Any = Sent()
    feed = EpochFeed(job)
    feed.advance_to(1)
    for id in (1, 2):
        feed.add({"person": {"id": np.array([id])}})
    feed.advance_to(3)
    assert job.sent == [("person", [1, 2])]


@pytest.mark.parametrize("query", PAPERS)
def test_rows_are_right_where_nobody_can_be_in_time(query: str) -> None:
    """Epochs of 50 µs: several are due whenever the last ones are complete, and are sent together by both workers."""
    plan = RunPlan(query, Config(seed=4, in_flight=20), bins=8, keep=True)
    load = LoadPlan(plan, rate=60_000, duration=0.05, epoch=0.00005, migrations=[(0.02, "fluid")], ready=1 << 16)
    seen = dataflow.execute(main, load, workers=2, in_process=True)
    assert rows_of(seen) == expected(load)
    for each in seen:
        assert len(each.recording["through"]) < load.schedule(1).epochs


def test_a_run_with_a_picture_a_page_and_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: str(tmp_path / f"x.{end}") for name, end in (("plot", "png"), ("json", "json"), ("report", "html"))}
    moves = tmp_path / "moves.jsonl"
    times = (300_000_000, 580_000_000, 580_000_001, 10**12)
    moves.write_text("".join(f'{{"time": {time}, "bin": 0, "worker": 0}}\n' for time in times))
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    options += ["--rate", "1000", "--duration", "0.6", "--epoch-ms", "20", "--workers", "1", "--config", str(moves)]
    assert command(["latency", "q4", *options]) == 0
    told, unreached = capsys.readouterr()
    assert unreached == (
        f"2 of 4 updates of --config {moves} were never reached: the last epoch began at 580,000,000 ns of event time "
        "(an epoch has 20 ms)\n"
    )
    assert "NEXMark Q4, 1,000 events/s, migratable, 256 bins, epochs of 20 ms" in told
    assert "resident memory, at the start and at most: worker 0" in told
    assert ".9999" in told and f"report: {files['report']}" in told
    document = json.loads(Path(files["json"]).read_text())
    assert document["query"] == "q4" and document["sustained"] in (True, False)
    assert Path(files["plot"]).stat().st_size > 10_000
    assert "<html" in Path(files["report"]).read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "0", "--duration", "1"], "--rate is 0; it must be above 0"),
        (["--rate", "1", "--duration", "1", "--epoch-ms", "2000"], "--epoch-ms is 2000; an epoch has from 0.000001"),
        (["--rate", "1", "--duration", "1", "--epoch-ms", "1e-9"], "--epoch-ms is 1e-09; an epoch has from 0.000001"),
        (["--rate", "1e-4", "--duration", "1"], "an epoch of 0.001 s or a rate of 0.0001 records/s is too small"),
        (["--rate", "1e15", "--duration", "1e9"], "--preload, --rate and --duration make 1,000,000,000,000,000,000,0"),
        (["--rate", "1", "--duration", "1", "--preload", "1e18"], "--preload, --rate and --duration make 1,000,"),
        (["--rate", "1", "--duration", "1", "--ready", "-1"], "--ready is -1; it must be 0 or more"),
        (["--rate", "1", "--duration", "1", "--at", "0.5"], "--migrate says how and --at says when"),
        (["--rate", "1", "--duration", "1", "--migrate", "fluid"], "--migrate says how and --at says when"),
        (["--rate", "1", "--duration", "1", "--migrate", "fluid", "--at", "2"], "--at 2 is not within the 1 s"),
        (["--rate", "1", "--duration", "1", "--scale", "2:4"], "--scale 2:4 is not within the 1 s of the run"),
        (["--rate", "1", "--duration", "1", "--scale", "0:1"], "--scale 0:1: the 2 workers of --workers feed the"),
        (["--rate", "1", "--duration", "1", "--scale", "0:3", "--variant", "native"], "--scale moves state, and nat"),
        (["--rate", "0.1", "--duration", "1"], "--rate 0.1 and --duration 1 make no event after the warm-up of 0.2"),
        (["--rate", "1", "--duration", "3", "--warm-up", "2.5"], "--rate 1 and --duration 3 make no event after the"),
        (["--rate", "1", "--duration", "3", "--warm-up", "3"], "--warm-up is 3.0; it must be less than the duration"),
        (
            ["--rate", "1", "--duration", "1", "--migrate", "fluid", "--at", "0", "--workers", "1"],
            "--migrate needs at least two workers",
        ),
        (
            ["--rate", "1", "--duration", "1", "--migrate", "fluid", "--at", "0", "--variant", "native"],
            "--migrate moves state, and native operators cannot",
        ),
        (["--rate", "1", "--duration", "1", "--hot-bidder-ratio", "0"], "--hot-bidder-ratio is 0"),
        (["--rate", "9", "--duration", "1", "--json", "nowhere/x"], "cannot write to nowhere/x"),
    ],
)
def test_nonsense_is_refused(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["latency", "q1", *options]) == 2
    assert f"python -m nexmark latency: {message}" in capsys.readouterr().err


def test_the_demo_refuses_nonsense(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command(["demo", "--rate", "0.0001"]) == 2
    assert "a rate of 0.0001 records/s is too small" in capsys.readouterr().err
    assert command(["demo", "--epoch-ms", "50,000"]) == 2
    assert "--epoch-ms is 50000; an epoch has from 0.000001" in capsys.readouterr().err
    assert command(["demo", "--duration", "3"]) == 2
    assert "six migrations and two changes need at least 10" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert command(["demo", "--out", str(tmp_path / "file")]) == 2
    assert "cannot write to --out" in capsys.readouterr().err


def test_a_rate_below_one_is_not_none() -> None:
    assert "NEXMark Q1, 0.1 events/s, " in title_of(LoadPlan(RunPlan("q1"), rate=0.1, duration=1))


@pytest.mark.parametrize("name", ["latency", "demo"])
def test_help_teaches(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        command([name, "--help"])
    assert exit.value.code == 0
    assert "exit codes" in capsys.readouterr().out
