"""What a run records, and what it refuses to."""

import math
from pathlib import Path

import pytest

from bench.run import Measurement, Run
from megaphone.harness import plots


def test_results_bear_the_name_of_their_experiment() -> None:
    run = Run(quick=False)
    run.begin("first")
    run.report("x", 1, "s")
    run.begin("second")
    run.report("x", 2, "s", baseline=4)
    assert run.results == [Measurement("first/x", 1.0, "s"), Measurement("second/x", 2.0, "s", 4.0)]
    assert [result.ratio for result in run.results] == [None, 0.5]


def test_a_baseline_of_zero_has_no_ratio() -> None:
    assert Measurement("lost records", 3.0, "records", baseline=0.0).ratio is None


@pytest.mark.parametrize(("value", "baseline"), [(math.nan, None), (math.inf, 1.0), (1.0, math.nan)])
def test_what_is_no_number_is_refused(value: float, baseline: float | None) -> None:
    run = Run(quick=False)
    with pytest.raises(ValueError, match=r"x: .* is not a measurement"):
        run.report("x", value, "s", baseline)
    assert run.results == []


def test_each_yields_every_item() -> None:
    assert list(Run(quick=True).each("counting", range(5))) == [0, 1, 2, 3, 4]


def test_pictures_are_named_after_the_experiment(tmp_path: Path) -> None:
    run = Run(quick=True, folder=tmp_path / "figures")
    run.begin("megaphone-13")
    figure = plots.bars({"Q1": {"native": 1.0}}, "One bar", "events/s")
    assert run.draw(figure) == tmp_path / "figures" / "megaphone-13.png"
    assert run.draw(figure, "memory") == tmp_path / "figures" / "megaphone-13-memory.png"
    assert run.pictures == [path for path in run.pictures if path.read_bytes().startswith(b"\x89PNG")]
