"""Where time goes: the parts add up to the whole, and what is written in C counts for who called it."""

import cProfile
import pstats
from pathlib import Path

import pytest

from bench.attribution import PLACES, PURPOSES, divided, purpose_of, seconds_by_purpose
from nexmark import Config, Generator


def test_the_parts_add_up_to_the_whole() -> None:
    generator = Generator(Config())
    profile = cProfile.Profile()
    profile.enable()
    generator.events(range(100_000))
    profile.disable()
    found = seconds_by_purpose(profile)
    whole = pstats.Stats(profile).total_tt  # type: ignore[attr-defined]
    assert set(found) == set(PURPOSES)
    assert sum(found.values()) == pytest.approx(whole)
    assert found["generation"] > 0.9 * whole


@pytest.mark.parametrize(
    ("function", "purpose"),
    [
        (("/x/megaphone/router/columns.py", 45, "route"), "routing"),
        (("/x/megaphone/host/host.py", 89, "apply"), "folding"),
        (("/x/dataflow/state/host.py", 1, "step"), "folding"),
        (("/root/.cache/megaphone-dataflow/folds/fold_00.py", 2, "_drive"), "folding"),
        (("/x/dataflow/comm/link.py", 1, "read"), "transport"),
        (("/x/dataflow/progress/tracker.py", 1, "propagate"), "progress"),
        (("/x/dataflow/run/worker.py", 1, "turn"), "engine"),
        (("/x/trio/_core/_run.py", 1, "unrolled_run"), "engine"),
    ],
)
def test_what_a_function_is_for(function: tuple[str, int, str], purpose: str) -> None:
    assert purpose_of(function) == purpose


def test_every_place_is_there() -> None:
    """A module that has moved would count for the engine, and nobody would notice."""
    root = Path(__file__).parents[2]
    places = [place for place, _ in PLACES if not place.startswith("folds/")]  # those are in the cache
    assert [place for place in places if not (root / place).is_dir() and not (root / f"{place}.py").is_file()] == []


def test_what_serves_others_counts_for_those_it_served() -> None:
    split, fold = ("/x/dataflow/columns/hashing.py", 1, "split"), ("/x/dataflow/state/native.py", 1, "_receive")
    take, each = (("/x/dataflow/columns/batch.py", line, name) for line, name in ((1, "take"), (2, "<dictcomp>")))
    numpy = ("~", 0, "take")
    found = divided({
        split: (1, 1, 1.0, 5.0, {}),
        fold: (1, 1, 2.0, 4.0, {}),
        take: (2, 2, 0.0, 6.0, {split: (1, 1, 0.0, 4.0), fold: (1, 1, 0.0, 2.0)}),
        each: (2, 2, 0.6, 6.0, {take: (2, 2, 0.6, 6.0)}),
        numpy: (9, 9, 5.4, 5.4, {each: (9, 9, 5.4, 5.4)}),
    })  # fmt: skip
    assert found["routing"] == pytest.approx(1.0 + 4.0)
    assert found["folding"] == pytest.approx(2.0 + 2.0)
    assert sum(found.values()) == pytest.approx(9.0)


def test_what_nobody_called_and_what_calls_itself_is_the_engine_s() -> None:
    alone, again = ("~", 0, "alone"), ("/y/numpy/again.py", 1, "again")
    found = divided({alone: (1, 1, 1.0, 1.0, {}), again: (2, 1, 2.0, 2.0, {again: (1, 1, 1.0, 1.0)})})
    assert found["engine"] == pytest.approx(3.0)
