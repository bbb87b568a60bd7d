"""Rates over time, to judge an autoscaler by: four shapes, and recordings in files. Records per second, by second."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable
from pathlib import Path

from planners.errors import BadRequest

Curve = list[float]
LOW, HIGH = 20_000.0, 160_000.0  # records per second


def step(seconds: int = 1800) -> Curve:
    """Low, high from a third on, low again from two thirds on."""
    return [HIGH if seconds // 3 <= second < 2 * seconds // 3 else LOW for second in range(seconds)]


def ramp(seconds: int = 1800) -> Curve:
    """Up in a line, and down again."""
    middle = seconds / 2
    return [LOW + (HIGH - LOW) * (1 - abs(second - middle) / middle) for second in range(seconds)]


def diurnal(seconds: int = 7200, seed: int = 1) -> Curve:
    """Two days, each in half of the time: a sine with a second peak, and noise of 3 %."""
    chance = random.Random(seed)
    found = []
    for second in range(seconds):
        day = 4 * math.pi * second / seconds
        shape = 0.5 - 0.42 * math.cos(day) - 0.08 * math.cos(2 * day)
        found.append((LOW + (HIGH - LOW) * shape) * (1 + 0.03 * chance.gauss(0, 1)))
    return [max(0.0, rate) for rate in found]


def spikes(seconds: int = 1800, seed: int = 1) -> Curve:
    """A steady rate, and now and then four times as much for 10 to 90 seconds."""
    chance = random.Random(seed)
    found = [2 * LOW] * seconds
    start = 120
    while start < seconds:
        for second in range(start, min(seconds, start + chance.randrange(10, 90))):
            found[second] = 8 * LOW
        start += chance.randrange(180, 420)
    return found


CURVES: dict[str, Callable[[], Curve]] = {"step": step, "ramp": ramp, "diurnal": diurnal, "spikes": spikes}


def read_curve(path: Path) -> Curve:
    """A recording: one rate per line, in records per second, a line for each second (the last column, if several)."""
    try:
        with open(path, newline="") as file:
            lines = [line[-1] for line in csv.reader(file) if line]
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from None
    rates = []
    for number, text in enumerate(lines, 1):
        try:
            rates.append(float(text))
        except ValueError:
            if number > 1:  # the first may be a heading
                raise BadRequest(f"line {number} of {path} should end with a rate, and ends with {text!r}") from None
    if not rates or not all(math.isfinite(rate) and rate >= 0 for rate in rates):
        raise BadRequest(f"{path} has no rates, or some that are negative")
    return rates
