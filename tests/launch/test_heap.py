"""Workers keep freed memory: an array that takes the place of a freed one costs no page faults."""

import resource
import sys

import numpy as np
import pytest

import dataflow

SIZE = 1 << 20  # of 8 bytes each: 2,048 pages
ROUNDS = 20


@pytest.mark.skipif(sys.platform != "linux", reason="what is kept depends on the C library")
def test_an_array_in_the_place_of_a_freed_one_costs_no_faults() -> None:
    async def main(worker: dataflow.Worker) -> int:
        total = 0.0
        for round in range(ROUNDS + 2):
            if round == 2:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            batches = [np.ones(SIZE) for _ in range(4)]  # freed together: more than the library would keep by itself
            total += sum(batch.sum() for batch in batches)
            del batches
        assert total == 4 * SIZE * (ROUNDS + 2)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    pages = SIZE * 8 // resource.getpagesize()
    assert all(faults < pages for faults in dataflow.execute(main, workers=2))  # less than one array's, of 80
