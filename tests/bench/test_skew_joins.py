"""The streams of the skew figures, with a worker that joins while they flow."""

from __future__ import annotations

from bench.experiments.skew.programs import Shape
from bench.experiments.skew.streaming import SkewStream, main
from dataflow.testing import simulate


def test_a_third_worker_joins_and_the_stream_goes_on() -> None:
    shape = Shape(intervals=1, epochs=30, records=100, keys=50)
    for joins, workers in ((3, 3), (None, 2)):
        outcomes = simulate(main, SkewStream("Mixed", joins=joins, cost=0.0, shape=shape), workers=2, seed=1)
        assert len(outcomes) == workers and [len(outcome.done) for outcome in outcomes[:2]] == [28, 28]
        assert all(outcome.done for outcome in outcomes)
