"""Python's garbage collector looks less often while a worker runs, unless the program has told it something."""

from __future__ import annotations

import gc

import pytest

import dataflow


async def thresholds(worker: dataflow.Worker) -> tuple[int, int, int]:
    return gc.get_threshold()


def test_a_worker_collects_seldom_and_leaves_the_process_as_it_was() -> None:
    before = gc.get_threshold()
    assert before == (700, 10, 10)
    ((young, middle, old),) = dataflow.execute(thresholds)
    assert young > 10_000
    assert (middle, old) == (10, 10)
    assert gc.get_threshold() == before


def test_so_do_workers_in_processes() -> None:
    assert all(young > 10_000 for young, _, _ in dataflow.execute(thresholds, workers=2))


@pytest.mark.parametrize("own", [(1_000, 5, 5), (0, 10, 10)])
def test_thresholds_of_the_program_stay(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    try:
        assert dataflow.execute(thresholds) == [own]
        assert gc.get_threshold() == own
    finally:
        gc.set_threshold(700, 10, 10)


def test_what_main_sets_stays() -> None:
    async def main(worker: dataflow.Worker) -> None:
        gc.set_threshold(2_000, 10, 10)

    try:
        dataflow.execute(main)
        assert gc.get_threshold() == (2_000, 10, 10)
    finally:
        gc.set_threshold(700, 10, 10)
