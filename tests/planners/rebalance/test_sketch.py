"""The sketch against a Counter: its guarantees, for any stream, in any batches, merged or not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planners.rebalance.sketch import SpaceSaving

STREAMS = st.lists(st.tuples(st.integers(0, 30) | st.integers(0, 2**64 - 1), st.integers(0, 9)), max_size=120)


def fed(capacity: int, stream: list[tuple[int, int]], batch: int) -> SpaceSaving:
    sketch = SpaceSaving(capacity)
    for i in range(0, len(stream), batch):
        part = stream[i : i + batch]
        sketch.update(np.array([k for k, _ in part], np.uint64), [w for _, w in part])
    return sketch


def check(sketch: SpaceSaving, stream: list[tuple[int, int]]) -> None:
    truth: Counter[int] = Counter()
    for key, weight in stream:
        truth[key] += weight
    total = sum(truth.values())
    assert sketch.total == total and sketch.floor <= sketch.bound == total / (sketch.capacity + 1)
    everything = sketch.heavy(share=0.0)
    held = dict(zip(everything.keys.tolist(), zip(everything.estimates, everything.errors, strict=True), strict=True))
    for key, (estimate, error) in held.items():
        assert estimate - error <= truth[key] <= estimate and error <= sketch.floor
        assert sketch.estimate(key) == estimate
    for key, weight in truth.items():
        assert weight <= sketch.estimate(key) <= weight + sketch.floor
        assert key in held or weight <= sketch.floor
    for share in (0.1, 0.3):
        heavy = set(sketch.heavy(share).keys.tolist())
        assert {key for key, weight in truth.items() if weight >= share * total and weight > sketch.floor} <= heavy
    assert sketch.heavy().size <= sketch.capacity
    assert (np.diff(everything.estimates) <= 0).all()


@settings(max_examples=300, deadline=None)
@given(stream=STREAMS, capacity=st.integers(1, 12), batch=st.integers(1, 50))
def test_the_guarantees_hold_for_any_stream(stream: list[tuple[int, int]], capacity: int, batch: int) -> None:
    check(fed(capacity, stream, batch), stream)


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(STREAMS, min_size=1, max_size=4), capacity=st.integers(1, 12))
def test_merging_keeps_the_guarantees(parts: list[list[tuple[int, int]]], capacity: int) -> None:
    whole = SpaceSaving(capacity)
    for part in parts:
        whole.merge(fed(capacity, part, 7))
    check(whole, [record for part in parts for record in part])


def test_a_skewed_stream_at_length() -> None:
    rng = np.random.default_rng(2)
    keys = rng.zipf(1.2, 200_000).astype(np.uint64)
    sketch = SpaceSaving(256)
    for batch in np.array_split(keys, 37):
        sketch.update(batch)
    truth = Counter(keys.tolist())
    top = [key for key, _ in truth.most_common(20)]
    assert set(top) <= set(sketch.heavy().keys.tolist()[:40])
    assert sketch.floor <= sketch.bound and sketch.total == keys.size
    sketch.clear()
    assert sketch.heavy().size == 0 and sketch.total == sketch.floor == 0


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        SpaceSaving(0)
    with pytest.raises(TypeError, match="hash them first"):
        SpaceSaving(4).update([1.5])
    with pytest.raises(ValueError, match="each record needs one"):
        SpaceSaving(4).update([1, 2], [1.0])
    with pytest.raises(ValueError, match="not negative"):
        SpaceSaving(4).update([1], [-1.0])
    with pytest.raises(ValueError, match="do not merge"):
        SpaceSaving(4).merge(SpaceSaving(5))
    negative = SpaceSaving(4)
    negative.update(np.array([-1, -1]))
    assert negative.estimate(-1) == 2
