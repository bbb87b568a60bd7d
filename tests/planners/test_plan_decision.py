"""When a join's plan is changed, by the loop, its driver, and the command line."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from megaphone import Replan
from planners.cli.command import main
from planners.errors import BadRequest
from planners.plans import JoinSample, JoinSampler, JoinStatistics, PlanDriver, ReplanDecision, ReplanLoop, compare

NAMES = tuple("abcd")
WINDOW = 60.0
OLD, NEW = "((a b) c) d", "a (b (c d))"


def known(rare: str, common: float = 0.05, sampled: int | None = None) -> JoinStatistics:
    """One stream is rare, as in section 5 of the paper."""
    pairs = itertools.combinations(NAMES, 2)
    shares = {frozenset(pair): common * (0.05 if rare in pair else 1.0) for pair in pairs}
    count = None if sampled is None else dict.fromkeys(NAMES, sampled)
    return JoinStatistics(NAMES, WINDOW, dict.fromkeys(NAMES, 1.0), shares, sampled=count)


def test_the_plan_changes_when_another_stream_is_rare() -> None:
    loop = ReplanLoop()
    best = str(compare(OLD, known("a")).best)
    first = [loop.decide(best, known("a"), now) for now in (60.0, 120.0)]
    assert not any(decision.acts for decision in first) and "is the cheapest plan" in first[0].reason
    wait, act = (loop.decide(best, known("d"), now) for now in (180.0, 240.0))
    assert not wait.acts and "for 1 of 2 intervals" in wait.reason
    assert act.plan == str(compare(OLD, known("d")).best) and str(act).startswith("interval 3: replan: ")
    assert act.found is not None and act.found.gain("hybmig", 5 * WINDOW) > 0
    assert not loop.decide(act.plan, known("d"), 300.0).acts


def test_a_blip_changes_nothing() -> None:
    loop = ReplanLoop()
    plan = str(compare(OLD, known("a")).best)
    decisions = [loop.decide(plan, known("da"[i % 2]), 60.0 * i) for i in range(8)]
    assert not any(decision.acts for decision in decisions)
    assert any(ReplanLoop(patience=1).decide(plan, known("da"[i % 2]), 60.0 * i).acts for i in range(8))


@pytest.mark.parametrize(
    ("loop", "statistics", "reason"),
    [
        (ReplanLoop(hysteresis=0.99, patience=1), known("d"), "less than 99% is not worth it"),
        (ReplanLoop(horizon=0.05, patience=1), known("d"), "but hybmig costs"),
        (ReplanLoop(patience=1), known("d", sampled=99), "99 records of a stream were sampled, of 100 wanted"),
        (ReplanLoop(patience=1), known("d", sampled=100), "windows gain"),
    ],
)
def test_reasons(loop: ReplanLoop, statistics: JoinStatistics, reason: str) -> None:
    decision = loop.decide(str(compare(OLD, known("a")).best), statistics, 60.0)
    assert reason in decision.reason and decision.acts == ("gain" in reason)


def test_after_a_change_there_is_peace_for_a_window() -> None:
    loop = ReplanLoop(patience=1)
    plan = loop.decide(str(compare(OLD, known("a")).best), known("d"), 60.0).plan
    assert plan is not None
    early, late = loop.decide(plan, known("a"), 100.0), loop.decide(plan, known("a"), 120.0)
    assert not early.acts and "the last plan came 40 ago" in early.reason
    assert late.acts


def test_migrations_that_do_not_pay() -> None:
    """The cheaper the method, the sooner it pays: moving state fills less than a window of the old plan costs."""
    found = compare(str(compare(OLD, known("a")).best), known("d"))
    assert found.costs["moving-state"].steps < found.costs["parallel-track"].steps
    pays = [found.costs[method].steps / found.saving / WINDOW for method in ("moving-state", "parallel-track")]
    for method in ("moving-state", "parallel-track"):
        loop = ReplanLoop(method, patience=1, horizon=sum(pays) / 2)
        assert loop.decide(str(compare(OLD, known("a")).best), known("d"), 60.0).acts == (method == "moving-state")


@pytest.mark.parametrize(
    "options", [{"method": "magic"}, {"patience": 0}, {"hysteresis": 1.0}, {"horizon": 0}, {"cool_down": -1}]
)
def test_loops_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        ReplanLoop(**options)


# --------------------------------------------------------------------------------------------------------- the driver


class FakeController:
    """Takes replans, and is busy when it is told to be."""

    def __init__(self) -> None:
        self.plans = [str(compare(OLD, known("a")).best)] * 4
        self.busy = False
        self.asked: list[tuple[Replan, str | None]] = []

    def replan(self, replan: Replan, strategy: str | None = None) -> None:
        self.asked.append((replan, strategy))
        self.plans = [str(replan.plan)] * 4


def sample(seed: int, rare: str, time: int) -> JoinSample[Any]:
    chance = Random(seed)
    sampler = JoinSampler[Any](NAMES, 300, seed)
    for at in range(time, time + 400):
        for name in NAMES:
            inside = name != rare or chance.random() < 0.05
            sampler.see(name, at, [(chance.randrange(20) if inside else -at - 1, at)])
    return sampler.take()


def driven(rares: str, **options: Any) -> tuple[FakeController, list[ReplanDecision]]:
    controller = FakeController()
    driver = PlanDriver[Any, str](
        controller, WINDOW, ReplanLoop("moving-state"), key_of=lambda r: r[0], strategy="fluid", **options
    )
    for i, rare in enumerate(rares):
        assert driver.step() is None, "nothing was heard since"
        driver.hear(sample(i, rare, 400 * i))
        assert driver.step() is not None
    return controller, driver.decisions


def test_the_driver_replans_once() -> None:
    told: list[ReplanDecision] = []
    controller, decisions = driven("aadddd", tell=told.append)
    assert [decision.acts for decision in decisions] == [False, False, False, True, False, False] and told == decisions
    assert len(controller.asked) == 1 and controller.asked[0][1] == "fluid"
    asked = controller.asked[0][0]
    assert (asked.plan, asked.method) == (decisions[3].plan, "moving-state")


def test_methods_of_opaque_plans_are_refused() -> None:
    with pytest.raises(BadRequest, match="ghm is for opaque plans"):
        PlanDriver[Any, str](FakeController(), WINDOW, ReplanLoop("ghm"))


def test_a_dry_run_changes_nothing() -> None:
    controller, decisions = driven("ddd", dry_run=True)
    assert any(decision.acts for decision in decisions) and not controller.asked


def test_the_driver_says_why_it_holds() -> None:
    controller = FakeController()
    driver = PlanDriver[Any, str](controller, WINDOW, key_of=lambda r: r[0])
    driver.hear(JoinSampler[Any](NAMES).take())
    decision = driver.step()
    assert decision is not None and decision.reason == "nothing came in any stream"
    sampler = JoinSampler[Any](NAMES)
    sampler.see("a", 1, [(1, 1)])
    driver.hear(sampler.take())
    decision = driver.step()
    assert decision is not None and decision.reason == "nothing came in b, c, d"
    controller.plans = ["x", "y"]
    driver.hear(sample(1, "a", 0))
    decision = driver.step()
    assert decision is not None and "2 different plans" in decision.reason
    controller.busy = True
    driver.hear(sample(1, "a", 0))
    assert driver.step() is None


# ---------------------------------------------------------------------------------------------------- the command line


def log(path: Path, rares: str) -> Path:
    intervals = [
        {
            "rates": dict.fromkeys(NAMES, 1.0),
            "same_key": {" ".join(sorted(pair)): share for pair, share in known(rare).same_key.items()},
        }
        for rare in rares
    ]
    path.write_text(json.dumps({"plan": str(compare(OLD, known("a")).best), "window": WINDOW, "intervals": intervals}))
    return path


def test_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path / "join.json", "addd")
    assert main(["order", str(path), "--dry-run", "--capacity", "1e6"]) == 0
    out = capsys.readouterr().out
    assert sum(line.startswith("interval") for line in out.splitlines()) == 4 and out.count("replan:") == 1
    assert "steps per unit of time" in out and "moving-state" in out and "silent for" in out
    assert main(["order", str(path), "--dry-run"]) == 0
    assert "silent for 0.0" in capsys.readouterr().out, "parallel track lasts a window whatever the machine"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "not a JSON object"),
        ("{}", "'plan' is missing"),
        ('{"plan": "a b", "window": 5, "intervals": []}', "one at least"),
        ('{"plan": "a b", "window": 0, "intervals": [{"rates": {"a": 1, "b": 1}}]}', "positive"),
        ('{"plan": "a b", "window": 5, "intervals": [{"rates": {"a": 1, "b": "x"}}]}', "'b' is a number"),
        ('{"plan": "a b", "window": 5, "intervals": [{"rates": {"a": 1, "b": 1}, "same_key": {"a c": 1}}]}', "a c"),
        ('{"plan": "a b c", "window": 5, "intervals": [{"rates": {"a": 1, "b": 1}}]}', "each of a, b once"),
    ],
)
def test_logs_that_cannot_be(text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "join.json"
    path.write_text(text)
    assert main(["order", str(path), "--dry-run"]) == 2
    assert complaint in capsys.readouterr().err


def test_a_log_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["order", str(tmp_path / "none.json"), "--dry-run"]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_what_never_ends_on_a_slow_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["order", str(log(tmp_path / "join.json", "addd")), "--dry-run", "--capacity", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("  ghm            never ends")]
    assert all(len(line) < 200 for line in lines)


def test_a_log_is_for_looking_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["order", str(log(tmp_path / "join.json", "a"))]) == 2
    assert "--dry-run" in capsys.readouterr().err
