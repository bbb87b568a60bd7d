"""The autoscaler: the rule against an oracle that adds up paths, the policy's promises, and simulated curves."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from planners.cli.command import main
from planners.errors import BadRequest
from planners.scaling import (
    Autoscaler,
    OperatorWork,
    RecordFlow,
    ScaleDriver,
    ScaleSettings,
    SourceWork,
    WorkInterval,
    workers_needed,
)
from planners.scaling.curves import CURVES, HIGH, LOW, read_curve
from planners.scaling.need import components
from planners.scaling.simulation import ModelDataflow, ModelOperator, Outlook, Threshold, simulate_scaling

# The rule


def random_interval(chance: random.Random) -> WorkInterval:
    """A graph without loops, in which what an operator takes in is what flows into it."""
    sources = [
        SourceWork(f"s{i}", chance.uniform(10, 1000), chance.random(), chance.choice([None, chance.uniform(1, 500)]))
        for i in range(chance.randint(1, 3))
    ]
    records = {each.name: each.records for each in sources}
    flows: list[RecordFlow] = []
    operators = []
    for i in range(chance.randint(1, 7)):
        name = f"o{i}"
        for before in chance.sample(sorted(records), chance.randint(1, len(records))):
            flows.append(RecordFlow(before, name, records[before] * chance.choice([0.0, 0.5, 1.0, 3.0])))
        records[name] = sum(flow.records for flow in flows if flow.target == name)
        operators.append(OperatorWork(name, records[name], chance.uniform(0, 5)))
    chance.shuffle(operators)
    return WorkInterval(chance.uniform(1, 60), chance.randint(1, 8), sources, operators, flows, chance.uniform(0, 2))


def by_paths(seen: WorkInterval) -> float:
    """The oracle: follows every path from every source, record by record of each, and adds up the time it takes."""
    taken = {each.name: each.records for each in (*seen.sources, *seen.operators)}
    busy = {each.name: each.busy for each in (*seen.sources, *seen.operators)}

    def follow(name: str, rate: float) -> float:
        here = rate * busy[name] / taken[name] if taken[name] else 0.0
        onwards = [flow for flow in seen.flows if flow.source == name and taken[name]]
        return here + sum(follow(flow.target, rate * flow.records / taken[name]) for flow in onwards)

    total = sum(
        follow(each.name, each.records / seen.seconds if each.offered is None else each.offered)
        for each in seen.sources
    )
    total += sum(each.busy / seen.seconds for each in seen.operators if not each.records)
    return total * (1 + seen.overhead / sum(busy.values()))


@pytest.mark.parametrize("seed", range(200))
def test_the_rule_adds_up_what_flows_along_every_path(seed: int) -> None:
    seen = random_interval(random.Random(seed))
    assert workers_needed(seen).exact == pytest.approx(by_paths(seen))


def test_the_papers_rule_in_numbers() -> None:
    """A source of 100/s that wants 400/s; each record costs 5 ms, and half of them 10 ms more."""
    seen = WorkInterval(
        10.0,
        1,
        [SourceWork("in", 1000, offered=400)],
        [OperatorWork("parse", 1000, 5.0), OperatorWork("join", 500, 5.0)],
        [RecordFlow("in", "parse", 1000), RecordFlow("parse", "join", 500)],
    )
    need = workers_needed(seen)
    assert need.rates == {"in": 400, "parse": 400, "join": 200} and need.true_rates == {"parse": 200, "join": 100}
    assert need.shares == {"in": 0, "parse": 2.0, "join": 2.0} and need.exact == 4.0
    assert need.workers(1.0) == 4 and need.workers(0.8) == 5 and need.workers(0.5) == 8  # one ceiling, of the sum


def test_waiting_is_not_busy() -> None:
    """The same work in twice the time, half of it spent waiting, needs half: true rates do not change."""
    seen = random_interval(random.Random(3))
    sources = [replace(each, offered=None) for each in seen.sources]
    idle = replace(seen, seconds=2 * seen.seconds, sources=sources)
    busy = replace(seen, sources=sources)
    assert workers_needed(idle).true_rates == workers_needed(busy).true_rates
    assert 2 * workers_needed(idle).exact == pytest.approx(workers_needed(busy).exact)


def test_a_loop_is_one_operator() -> None:
    """Each record goes round three times, at 1 ms each; at twice the rate everything doubles."""
    flows = [
        RecordFlow("in", "enter", 100),
        RecordFlow("enter", "body", 300),
        RecordFlow("body", "enter", 200),
        RecordFlow("body", "out", 100),
    ]
    operators = [OperatorWork("out", 100, 0.1), OperatorWork("body", 300, 0.3), OperatorWork("enter", 300, 0.3)]
    seen = WorkInterval(1.0, 1, [SourceWork("in", 100, offered=200)], operators, flows)
    need = workers_needed(seen)
    assert need.rates == {"in": 200, "enter": 600, "body": 600, "out": 200} and need.exact == pytest.approx(1.4)
    assert [sorted(group) for group in components(["out", "body", "enter"], flows)] == [["body", "enter"], ["out"]]


@pytest.mark.parametrize("seed", range(100))
def test_components_are_in_order_and_loops_together(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"o{i}" for i in range(chance.randint(1, 9))]
    flows = [RecordFlow(*chance.choices(names, k=2), 1) for _ in range(chance.randint(0, 14))]
    reach = {(name, name) for name in names} | {(flow.source, flow.target) for flow in flows}
    for middle in names:
        reach |= {(a, b) for a, m in reach for n, b in reach if m == n == middle}
    groups = components(names, flows)
    assert sorted(name for group in groups for name in group) == sorted(names)
    place = {name: i for i, group in enumerate(groups) for name in group}
    for a in names:
        for b in names:
            assert (place[a] == place[b]) == ((a, b) in reach and (b, a) in reach)
            assert place[a] <= place[b] or (a, b) not in reach


def test_a_backlog_counts_if_it_is_to_be_caught_up() -> None:
    seen = WorkInterval(
        1, 1, [SourceWork("in", 10, offered=10, backlog=100)], [OperatorWork("a", 10, 1)], [RecordFlow("in", "a", 10)]
    )
    assert workers_needed(seen).exact == 1.0 and workers_needed(seen, catch_up=20).exact == 1.5


def test_intervals_that_make_no_sense_are_refused() -> None:
    a = OperatorWork("a", 1, 1)
    with pytest.raises(BadRequest, match="two operators of an interval are called 'a'"):
        WorkInterval(1, 1, [], [a, a], [])
    with pytest.raises(BadRequest, match="a flow from 'b' to 'a' names 'b', which is not there"):
        WorkInterval(1, 1, [], [a], [RecordFlow("b", "a", 1)])
    with pytest.raises(BadRequest, match="goes into the source 's'"):
        WorkInterval(1, 1, [SourceWork("s", 1)], [a], [RecordFlow("a", "s", 1)])
    with pytest.raises(BadRequest, match="seconds and workers"):
        WorkInterval(0, 1, [], [a], [])
    with pytest.raises(BadRequest, match="0 or more"):
        WorkInterval(1, 1, [], [OperatorWork("a", -1, 1)], [])


# The policy


def asking(for_workers: float, here: int) -> WorkInterval:
    """An interval whose useful work is that of so many workers."""
    return WorkInterval(1, here, [SourceWork("in", 1)], [OperatorWork("a", 1, for_workers)], [RecordFlow("in", "a", 1)])


def reasons(settings: ScaleSettings, *seen: tuple[float, int]) -> list[str]:
    scaler = Autoscaler(settings)
    return [str(scaler.decide(asking(*each))).partition(": ")[2] for each in seen]


EAGER = ScaleSettings(utilisation=1.0, warm_up=0, cool_down=0, hysteresis=0.0)


def test_it_grows_and_shrinks_to_what_is_needed_and_says_why() -> None:
    told = reasons(EAGER, (3.2, 1), (3.2, 4), (0.5, 4), (0.0, 1))
    assert told == [
        "scale from 1 to 4: useful work for 3.20 workers at 100% busy; a needs most of it, 3.20",
        "stay at 4: useful work for 3.20 workers",
        "scale from 4 to 1: useful work for 0.50 workers at 100% busy; a needs most of it, 0.50",
        "stay at 1: useful work for 0.00 workers",
    ]


def test_it_warms_up_after_the_start_and_after_each_change() -> None:
    told = reasons(replace(EAGER, warm_up=2), (3, 1), (3, 1), (3, 1), (9, 3), (9, 3), (9, 3))
    what = [line.partition(":")[0] for line in told]
    assert what == ["stay at 1"] * 2 + ["scale from 1 to 3"] + ["stay at 3"] * 2 + ["scale from 3 to 9"]
    assert told[1] == "stay at 1: warming up, interval 2 of 2"


def test_it_takes_the_median_of_the_intervals_that_it_waits_for() -> None:
    told = reasons(replace(EAGER, activation=3), (2, 1), (50, 1), (3, 1))
    assert told[1].endswith("2 of 3 intervals") and told[2].startswith("scale from 1 to 3")


def test_it_stays_within_its_bounds() -> None:
    bounded = replace(EAGER, minimum=2, maximum=4)
    told = reasons(bounded, (9, 2), (9, 4), (0.1, 4), (0.1, 2))
    assert told[0].startswith("scale from 2 to 4: ") and "(9 would be needed)" in told[0]
    assert told[1] == "stay at 4: useful work for 9.00 workers: 9 workers are needed, and 4 is the most"
    assert told[2].startswith("scale from 4 to 2") and told[3].startswith("stay at 2")


def test_it_does_not_shrink_for_a_little_nor_just_after_a_change() -> None:
    told = reasons(replace(EAGER, hysteresis=0.1), (2.95, 4), (2.6, 4))
    assert told[0].endswith("3 workers would do, with too little to spare") and told[1].startswith("scale from 4 to 3")
    cooling = replace(EAGER, cool_down=2)
    told = reasons(cooling, (4, 1), (1, 4), (1, 4), (1, 4))
    assert [line.partition(":")[0] for line in told[1:]] == ["stay at 4", "stay at 4", "scale from 4 to 1"]
    assert reasons(cooling, (4, 1), (9, 4))[1].startswith("scale from 4 to 9")  # to grow may be urgent


@pytest.mark.parametrize("seed", range(50))
def test_it_never_asks_for_too_few_nor_leaves_its_bounds(seed: int) -> None:
    chance = random.Random(seed)
    low = chance.randint(1, 4)
    most, cool_down = low + chance.randint(0, 20), chance.randint(0, 3)
    settings = ScaleSettings(chance.uniform(0.3, 1), low, most, 0, 1, cool_down, chance.uniform(0, 0.5))
    scaler, here = Autoscaler(settings), low
    for _ in range(30):
        work = chance.uniform(0, 20)
        decision = scaler.decide(asking(work, here))
        assert settings.minimum <= decision.wanted <= settings.maximum
        assert decision.wanted == settings.maximum or work <= decision.wanted * settings.utilisation + 1e-6
        here = decision.wanted


def test_settings_that_make_no_sense_are_refused() -> None:
    shares = [{"utilisation": 0.0}, {"hysteresis": 1.0}, {"catch_up": 0.0}]
    for wrong in [*shares, {"minimum": 0}, {"minimum": 3, "maximum": 2}, {"activation": 0}, {"warm_up": -1}]:
        with pytest.raises(BadRequest):
            ScaleSettings(**wrong)  # type: ignore[arg-type]


class Recorder:
    """Something that can be scaled, and takes its time."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.done = False

    def scale(self, workers: int, /) -> Recorder:
        self.asked.append(workers)
        self.done = False
        return self


def test_the_driver_asks_once_and_waits_until_it_is_done() -> None:
    recorder = Recorder()
    driver = ScaleDriver(recorder, Autoscaler(EAGER))
    assert driver.step(asking(3, 1)) is not None and recorder.asked == [3]
    assert driver.step(asking(3, 1)) is None  # under way
    recorder.done = True
    assert driver.step(asking(7, 3)) is None  # it was, during this interval
    assert driver.step(asking(7, 3)) is not None and recorder.asked == [3, 7]
    told: list[str] = []
    dry = ScaleDriver(recorder, Autoscaler(EAGER), dry_run=True, tell=lambda each: told.append(str(each)))
    dry.step(asking(5, 1))
    assert recorder.asked == [3, 7] and told[0].startswith("interval 0: scale from 1 to 5")


# Simulated curves


@pytest.mark.parametrize("seed", range(60))
def test_a_steady_rate_is_reached_in_at_most_three_steps(seed: int) -> None:
    chance = random.Random(seed)
    operators = [
        ModelOperator(f"o{i}", chance.uniform(1, 60), chance.uniform(0.2, 2.0)) for i in range(chance.randint(1, 6))
    ]
    model = ModelDataflow(operators, drag=chance.uniform(0, 0.03))
    aim = chance.randint(1, 12)
    rate = model.capacity(aim) * 0.8 * chance.uniform(0.85, 0.99)
    outlook = Outlook(workers=chance.randint(1, 16), seed=seed, noise=0.0)
    story = simulate_scaling([rate] * 300, Autoscaler(ScaleSettings(hysteresis=0.02)).decide, model, outlook)
    assert len(story.changes) <= 3, [str(each) for each in story.decisions]
    assert story.fewest[-1] <= story.workers[-1] <= story.fewest[-1] + 1  # one more, if it has too little to spare
    assert not story.short[-1] and len({*story.workers[-150:]}) == 1


@pytest.mark.parametrize(
    ("name", "under", "over"), [("step", 24, 600), ("ramp", 0, 1500), ("diurnal", 30, 6500), ("spikes", 600, 1100)]
)
def test_curves(name: str, under: int, over: int) -> None:
    """Seconds in which there were too few workers, or more than the oracle has. Counted, on a clock of numbers."""
    story = simulate_scaling(CURVES[name](), Autoscaler().decide, ModelDataflow(), Outlook(workers=2))
    rival = simulate_scaling(CURVES[name](), Threshold().decide, ModelDataflow(), Outlook(workers=2))
    assert story.under <= under and story.over <= over, (story.under, story.over, story.spent, len(story.changes))
    assert story.under <= rival.under and story.worst <= rival.worst


def test_a_step_takes_at_most_three_changes_each_way() -> None:
    story = simulate_scaling(CURVES["step"](), Autoscaler().decide, ModelDataflow(), Outlook(workers=1))
    up = [each for each in story.changes if each.wanted > each.workers and each.interval > 10]
    down = [each for each in story.changes if each.wanted < each.workers]
    assert 1 <= len(up) <= 3 and 1 <= len(down) <= 3, [str(each) for each in story.changes]


def test_the_oracle_is_the_fewest() -> None:
    model = ModelDataflow()
    for rate in (LOW, 3 * LOW, HIGH):
        fewest = model.fewest(rate, 0.8, 64)
        assert model.capacity(fewest) * 0.8 >= rate and (fewest == 1 or model.capacity(fewest - 1) * 0.8 < rate)


def test_recordings_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("second,rate\n0,100\n1,200.5\n")
    assert read_curve(path) == [100.0, 200.5]
    path.write_text("100\nmany\n")
    with pytest.raises(BadRequest, match=r"line 2 of .* should end with a rate, and ends with 'many'"):
        read_curve(path)
    path.write_text("-1\n")
    with pytest.raises(BadRequest, match="negative"):
        read_curve(path)
    with pytest.raises(BadRequest, match="cannot read"):
        read_curve(tmp_path / "nothing.csv")


# The command


def test_the_command_prints_a_table_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = tmp_path / "monday.csv"
    rates.write_text("\n".join(["30000"] * 60 + ["150000"] * 60))
    picture = tmp_path / "monday.png"
    assert main(["scale", "--rates", str(rates), "--decisions", "--picture", str(picture)]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["curve", "policy", "seconds"]
    assert lines[0].split()[:3] == ["monday", "ds2", "120"] and "scale from" in lines[1]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["scale", "--rates", str(tmp_path / "nothing")]) == 2
    assert main(["scale", "--utilisation", "2"]) == 2
