"""Where time goes: the parts add up to the whole, and what is written in C counts for who called it."""

import cProfile
import pstats

import pytest

from bench.attribution import PURPOSES, purpose_of, seconds_by_purpose
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
        (("/x/megaphone/columns.py", 45, "route"), "routing"),
        (("/x/megaphone/columns.py", 89, "apply"), "folding"),
        (("/root/.cache/megaphone-dataflow/folds/fold_00.py", 2, "_drive"), "folding"),
        (("/x/dataflow/comm/link.py", 1, "read"), "transport"),
        (("/x/dataflow/progress/tracker.py", 1, "propagate"), "progress"),
        (("/x/dataflow/worker.py", 1, "turn"), "engine"),
        (("/x/trio/_core/_run.py", 1, "unrolled_run"), "engine"),
    ],
)
def test_what_a_function_is_for(function: tuple[str, int, str], purpose: str) -> None:
    assert purpose_of(function) == purpose
