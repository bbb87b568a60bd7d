"""A sample of the fuzzer's cases; `make soak` goes on with others."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from random import Random
from typing import Any

import pytest

from dataflow.errors import ProtocolError
from tests.comm import fuzz
from tests.engine.harness import failsafe

BLOCK = 500


@pytest.mark.parametrize("start", range(0, 3000, BLOCK))
def test_a_sample_of_cases(start: int) -> None:
    with failsafe(60):
        for seed in range(start, start + BLOCK):
            fuzz.run_case(seed)


def test_no_case_allocates_more_than_a_few_frames() -> None:
    tracemalloc.start()
    try:
        with failsafe(60):
            for seed in range(10_000, 10_400):
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                fuzz.run_case(seed)
                _, peak = tracemalloc.get_traced_memory()
                assert peak - before < 16 << 20, f"seed {seed}"
    finally:
        tracemalloc.stop()


def test_the_fuzzer_gets_everywhere() -> None:
    # A fuzzer whose inputs are all turned away at the door would find nothing.
    outcomes: Counter[str] = Counter()
    original = fuzz.receive

    def receive(chance: Random, stream: bytes, *memory: Any) -> list[fuzz.AnyMessage]:
        try:
            messages = original(chance, stream, *memory)
        except ProtocolError as error:
            outcomes[str(error).split(":")[0].rstrip("0123456789")[:34]] += 1
            raise
        outcomes["messages" if messages else "nothing"] += 1
        return messages

    fuzz.receive = receive
    try:
        for seed in range(600):
            fuzz.run_case(seed)
    finally:
        fuzz.receive = original
    assert outcomes["messages"] > 60
    assert outcomes["worker 1 sent a frame that makes no"] + outcomes["worker 1 sent a frame that makes n"] > 100
    assert any("has its body where there" in outcome for outcome in outcomes)
    assert len(outcomes) > 5
