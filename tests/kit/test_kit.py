"""The kit finds what is wrong, and says how to see it again."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import dataflow
from dataflow import sinks, sources
from dataflow.state import native
from dataflow.testing import KeptRows, Rehearsal, out_of_order, play

WORDS = [f"w{n % 5}" for n in range(40)]
RIGHT = sorted((word, n) for word in set(WORDS) for n in range(1, WORDS.count(word) + 1))


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]


@pytest.mark.parametrize("seed", range(30))
def test_arrivals_against_the_rule(seed: int) -> None:
    """Whatever is not called late is at most the delay behind; whatever is, is further behind. By brute force."""
    chance = random.Random(seed)
    delay = chance.choice([0, 1, 5, 20])
    events = sorted((chance.randrange(100), n) for n in range(chance.randrange(1, 60)))
    arrivals = out_of_order(events, lambda event: event[0], delay, late=chance.choice([0, 0.3, 1]), seed=seed)
    assert sorted(arrivals.records) == events
    for place, event in enumerate(arrivals.records):
        before = max((time for time, _ in arrivals.records[:place]), default=event[0])
        assert (event in arrivals.late) == (before - event[0] > delay)
    assert sorted(arrivals.on_time + arrivals.late) == events


def test_arrivals_are_out_of_order_and_late_when_they_should_be() -> None:
    events = [(n, n) for n in range(200)]
    assert out_of_order(events, lambda event: event[0], 20).records != events
    assert out_of_order(events, lambda event: event[0], 20).late == []
    assert len(out_of_order(events, lambda event: event[0], 20, late=0.3).late) > 20


def test_play_is_the_same_on_any_workers_and_seeds() -> None:
    epochs = [["a b", "b"], [], ["c a"]]
    expected = [(0, ("a", 1)), (0, ("b", 2)), (2, ("a", 1)), (2, ("c", 1))]
    for seed in range(10):
        build: Any = lambda lines: lines.flat_map(str.split).count(key=str)  # noqa: E731
        assert play(build, epochs, workers=1 + seed % 4, seed=seed) == expected


def rehearse(seed: int, build: Any, sink: Any = None, **options: Any) -> tuple[Rehearsal, list[Any]]:
    """Words through `build(stream)` into a sink, through crashes."""
    rehearsal = Rehearsal(seed, every=options.pop("every", 1.0))
    source = rehearsal.source({"a": WORDS[:10], "b": WORDS[10:]})
    out: KeptRows[Any] = rehearsal.sink()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            build(scope.source(source)).sink(sink(out) if sink else out, name="out")

    rehearsal.run(main, **{"crashes": 3, **options})
    return rehearsal, sorted(out.rows)


def counted(stream: Any) -> Any:
    return native.state_machine(stream.map(lambda word: (word, 1)), fold=count, name="totals")


@pytest.mark.parametrize("seed", range(10))
def test_a_right_program_is_right(seed: int) -> None:
    rehearsal, rows = rehearse(seed, counted)
    assert rows == RIGHT
    crashed = [life.crashed for life in rehearsal.lives]
    assert crashed[0] and not any(crashed[3:]) and not crashed[-1]
    assert rehearse(seed, counted)[0].lives == rehearsal.lives, "the same seed is the same rehearsal"


def test_lives_go_on_from_snapshots_and_have_other_numbers_of_workers() -> None:
    lives = [life for seed in range(10) for life in rehearse(seed, counted)[0].lives]
    assert any(life.began > 0 for life in lives)
    assert {life.workers for life in lives} == {1, 2, 3}


def found(build: Any, sink: Any = None) -> bool:
    """Whether some seed shows that something is wrong."""
    return any(rehearse(seed, build, sink)[1] != RIGHT for seed in range(10))


def test_state_that_snapshots_do_not_see_is_found() -> None:
    totals: Counter[str] = Counter()  # of the process: it forgets nothing, and counts again what comes again

    def careless(stream: Any) -> Any:
        def add(word: str) -> tuple[str, int]:
            totals[word] += 1
            return word, totals[word]

        totals.clear()
        return stream.exchange(lambda word: word).map(add)

    assert found(careless)


def test_a_sink_that_shows_too_early_is_found() -> None:
    class Early(sinks.Sink):
        """Shows what it gets at once, and again after a crash."""

        def __init__(self, out: KeptRows[Any]) -> None:
            self.out = out

        def open(self, place: sinks.Place) -> sinks.Writer:
            writer = sinks.at_least_once(lambda _, batch: self.out.rows.extend(batch)).open(place)
            assert isinstance(writer, sinks.Writer)
            return writer

    assert found(counted, Early)


def test_a_source_that_goes_back_too_far_is_found() -> None:
    class Forgetful(sources.Partitions[str]):
        def __init__(self, source: sources.Partitions[str]) -> None:
            self.source = source

        async def partitions(self) -> Any:
            return await self.source.partitions()

        def read(self, partition: str, position: Any) -> Any:
            return self.source.read(partition, None if position is None else max(0, position - 1))

    wrong = False
    for seed in range(10):
        rehearsal = Rehearsal(seed)
        source = Forgetful(rehearsal.source(WORDS))
        out: KeptRows[Any] = rehearsal.sink()

        async def main(worker: dataflow.Worker, source: Any = source, out: Any = out) -> None:
            with worker.dataflow() as scope:
                counted(scope.source(source)).sink(out)

        rehearsal.run(main, crashes=3)
        wrong = wrong or sorted(out.rows) != RIGHT
    assert wrong


def test_a_failure_says_how_to_see_it_again() -> None:
    def fail(word: str) -> str:
        raise ValueError("always")

    with pytest.raises(ValueError, match="always") as failure:
        rehearse(17, lambda stream: stream.map(fail))
    notes = " ".join(failure.value.__notes__)
    assert "rehearsed with seed=17, in life 1" in notes
