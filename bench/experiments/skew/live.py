"""Figures skew-12 to skew-15 and the benchmark ``skew``: throughput under skew and fluctuation with the loop on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bench.experiments.skew.drawing import Panel, draw
from bench.experiments.skew.scenario import PLANNERS, Scenario, adjustments, mean_cost, median_ms
from bench.experiments.skew.streaming import Outcome, Stream, hashing_share, measure
from bench.registry import benchmark, figure
from bench.run import Run
from planners.rebalance import Plan, mixed_bf, readj


def _stream(run: Run, mode: str) -> Stream:
    return Stream(mode, intervals=2, epochs=80) if run.quick else Stream(mode)


def _settled(stream: Stream) -> int:
    """Epochs that are not counted: the first half of the first interval, in which the loop mends what hashing did."""
    return stream.epochs // 2


def _throughput(stream: Stream, outcome: Outcome) -> float:
    return outcome.throughput(stream.records, _settled(stream))


def _latency(outcome: Outcome, stream: Stream) -> float:
    return 1e3 * float(np.median(outcome.latencies[_settled(stream) :]))


@benchmark("skew", "throughput under skew and fluctuation: the loop against hashing and the ideal (aim: 0.9 of ideal)")
def skew(run: Run) -> None:
    for f in run.each("f", [0.5] if run.quick else [0.0, 0.5, 1.0]):
        ideal_stream = replace(_stream(run, "ideal"), f=f)
        ideal = _throughput(ideal_stream, measure(ideal_stream))
        run.report(f"f = {f}: ideal (shuffled)", ideal, "records/s")
        share = hashing_share(ideal_stream)
        run.report(f"f = {f}: what the most loaded worker leaves hashing", ideal * share, "records/s", baseline=ideal)
        for mode in ("hashing", "Mixed"):
            stream = replace(ideal_stream, mode=mode)
            outcome = measure(stream)
            run.report(f"f = {f}: {mode}", _throughput(stream, outcome), "records/s", baseline=ideal)
            if mode == "Mixed":
                run.report(f"f = {f}: migrations of the loop", outcome.acted, "migrations")


@figure("skew-12", "plan generation and migration cost by fluctuation: Mixed, Readj and MixedBF")
def skew_12(run: Run) -> None:
    base = Scenario(keys=2_000, intervals=2, instances=5) if run.quick else Scenario(keys=10_000, intervals=4)
    times = Panel("fluctuation f", "CPU time to make a plan (ms, median)", log_y=True)
    costs = Panel("fluctuation f", "migration cost (% of all state)")
    PLANNERS.update({"Readj": _without_beta, "MixedBF": mixed_bf})
    for f in run.each("f", [0.2, 1.0] if run.quick else [0.1, 0.5, 1.0, 1.5, 2.0]):
        for name in ("Mixed", "Readj", "MixedBF"):
            found = adjustments(base.but(f=f), name)
            times.add(name, f, median_ms(found))
            costs.add(name, f, mean_cost(found))
            run.report(f"{name}, f {f:g}: plan", median_ms(found), "ms")
            run.report(f"{name}, f {f:g}: migration cost", mean_cost(found), "%")
    draw("skew-12", "Plans by fluctuation", base.label("f"), times, costs)


def _without_beta(*arrays: Any, beta: float = 0.0, **options: Any) -> Plan:
    return readj(*arrays, **options)


@figure("skew-13", "throughput and latency by fluctuation, with the loop on, under hashing and ideally")
def skew_13(run: Run) -> None:
    throughput = Panel("fluctuation f", "throughput (1,000 records/s)")
    latency = Panel("fluctuation f", "latency of an epoch (ms, median)")
    for f in run.each("f", [0.0, 1.0] if run.quick else [0.0, 0.5, 1.0, 1.5]):
        for mode in ("ideal", "Mixed", "Readj", "hashing"):
            stream = replace(_stream(run, mode), f=f)
            outcome = measure(stream)
            throughput.add(mode, f, _throughput(stream, outcome) / 1e3)
            latency.add(mode, f, _latency(outcome, stream))
            run.report(f"{mode}, f {f:g}", _throughput(stream, outcome), "records/s")
    caption = _caption(_stream(run, ""))
    draw("skew-13", "Throughput and latency by fluctuation", caption, throughput, latency)


@figure("skew-14", "throughput on social and stock data by theta")
def skew_14(run: Run) -> None:
    panels = []
    for data in ("social", "stock"):
        panel = Panel("tolerance θ", f"throughput on {data} data (1,000 records/s)")
        for theta in run.each(data, [0.02, 0.3] if run.quick else [0.02, 0.08, 0.15, 0.3]):
            for mode in ("ideal", "Mixed", "MinTable", "Readj", "hashing"):
                stream = replace(_stream(run, mode), data=data, theta=theta)
                found = _throughput(stream, measure(stream))
                panel.add(mode, theta, found / 1e3)
                run.report(f"{data}, {mode}, theta {theta:g}", found, "records/s")
        panels.append(panel)
    draw("skew-14", "Throughput by tolerance", _caption(_stream(run, "")), *panels)


@figure("skew-15", "throughput over time when a spare worker, which starts empty, may be used")
def skew_15(run: Run) -> None:
    panel = Panel("seconds", "throughput (1,000 records/s)")
    for mode in run.each("mode", ["hashing", "Mixed", "Readj"]):
        base = _stream(run, mode)
        stream = replace(base, f=0.0, intervals=1, epochs=2 * base.epochs, spare=base.epochs // 2)
        outcome = measure(stream)
        window = 10
        for at in range(window, len(outcome.done), window):
            seconds = outcome.done[at] - outcome.done[at - window]
            panel.add(mode, outcome.done[at], window * stream.records / seconds / 1e3)
        last = outcome.throughput(stream.records, len(outcome.done) * 3 // 4)
        run.report(f"{mode}: at the end", last, "records/s", baseline=1 / stream.cost)
    draw("skew-15", "A second worker from the middle on", _caption(_stream(run, "")), panel)


def _caption(stream: Stream) -> str:
    return (
        f"two workers, {1e6 * stream.cost:g} us per record; z = {stream.z}, {stream.keys:,} keys, {stream.intervals} "
        f"intervals of {stream.epochs} epochs of {stream.records:,} records; θ = {stream.theta} unless varied"
    )
