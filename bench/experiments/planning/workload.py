"""The word-count workload of the papers' experiments (section 6), without their tweets.

Words have Zipf frequencies; a hash deals them to tasks. A task's load is how often its words occur, its size the
counters of the words that it knows. The number of nodes follows the time of day, with noise and bursts, as the papers'
follows the tweets of an hour. Loads may drift from hour to hour: what people speak of changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from planners import Tasks
from planners.mtm.transitions import Transitions, from_history

VOCABULARY = 50_000
SKEW = 0.9  # the most frequent word is then one in twenty
COUNTER = 48  # bytes for a word and its count


def word_count(tasks: int, seed: int = 1) -> Tasks:
    """The tasks of a word count."""
    rng = np.random.default_rng(seed)
    frequency = np.arange(1, VOCABULARY + 1) ** -SKEW
    bins = rng.integers(0, tasks, VOCABULARY)
    loads = np.bincount(bins, weights=frequency / frequency.sum() * 1e6, minlength=tasks)
    lengths = rng.poisson(4, VOCABULARY) + 1
    sizes = np.bincount(bins, weights=COUNTER + lengths, minlength=tasks)
    return Tasks(sizes.astype(np.int64), loads.astype(np.int64))


def steady(tasks: Tasks) -> Iterator[Tasks]:
    """The same at every step: what the projected costs suppose."""
    return repeat(tasks)


def drifting(tasks: Tasks, seed: int) -> Iterator[Tasks]:
    """Loads that wander around those given, each half forgotten after some steps; now and then one task bursts."""
    rng = np.random.default_rng(seed)
    usual, wander = tasks.loads.astype(np.float64), np.zeros(len(tasks))
    while True:
        wander = 0.8 * wander + 0.3 * rng.standard_normal(len(tasks))
        burst = np.zeros(len(tasks))
        if rng.random() < 0.3:
            burst[rng.integers(len(tasks))] = usual.mean() * min(rng.pareto(2.0), 3.0)
        yield Tasks(tasks.sizes, np.maximum(1, usual * np.exp(wander) + burst).astype(np.int64))


def resizing(tasks: Tasks, seed: int) -> Iterator[Tasks]:
    """State that grows and shrinks from step to step, each task by itself, while loads stay as they are."""
    rng = np.random.default_rng(seed)
    wander = np.zeros(len(tasks))
    while True:
        wander = 0.8 * wander + 0.5 * rng.standard_normal(len(tasks))
        yield Tasks(np.maximum(1, tasks.sizes * np.exp(wander)).astype(np.int64), tasks.loads)


def node_counts(low: int, high: int, hours: int = 24 * 30, seed: int = 1) -> list[int]:
    """How many nodes each hour of a month needs, normalised to a range."""
    rng = np.random.default_rng(seed)
    hour = np.arange(hours)
    rate = 1.5 + np.sin(2 * np.pi * (hour - 8) / 24) + 0.2 * np.sin(2 * np.pi * hour / (24 * 7))
    bursts = (rng.random(hours) < 0.03) * rng.pareto(2.5, hours)
    rate = rate * np.exp(0.12 * rng.standard_normal(hours)) + np.minimum(bursts, 2.0)
    share = (rate - rate.min()) / (rate.max() - rate.min())
    return [low + round(each * (high - low)) for each in share.tolist()]


def transitions(low: int, high: int, seed: int = 1) -> Transitions:
    """The migration transition matrix of such a month; only changes count, as in section 6."""
    return from_history(node_counts(low, high, seed=seed))
