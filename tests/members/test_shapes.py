"""Bins that split and merge while workers come and go: joiners know which there are, and each worker gets some."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import megaphone
from dataflow import Worker
from dataflow.testing import simulate

END = 24
TOTALS = "totals"


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"})
def tally(key: int, value: int, state: Any) -> tuple[int, int]:
    state.count += value
    return key, state.count


class Shaped:
    """A count without `bins`, updates of all kinds, and other numbers of workers; all drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        chance = random.Random(f"shapes {seed}")
        self.workers = chance.choice([1, 2, 3])
        self.scales = {6: chance.choice([2, 4, 5]), 15: chance.choice([1, 3, 5])}
        self.updates = {time: self._update(chance) for time in range(END - 2) if chance.random() < 0.5}
        self.sent: Counter[tuple[int, int]] = Counter()
        self.out: Counter[tuple[int, int]] = Counter()
        self.shapes: dict[int, tuple[list[str], list[int]]] = {}

    def _update(self, chance: random.Random) -> Any:
        prefix = "".join(chance.choice("01") for _ in range(chance.randint(1, 7))) + "*"
        kind = chance.choice(["split", "merge", "move"])
        if kind == "split":
            return megaphone.Split(prefix, 1 << chance.randint(1, 3))
        return megaphone.Merge(prefix) if kind == "merge" else megaphone.Move(prefix, 0)

    async def main(self, worker: Worker) -> None:
        """What each worker does."""
        chance = random.Random(f"{self.seed} {worker.index}")
        with worker.dataflow() as scope:
            keys, stream = scope.input()
            control = scope.control()
            counts = megaphone.state_machine(
                control, stream, key="key", value="one", fold=tally.without_compiling(), name=TOTALS, interval=0
            )
            probe = counts.inspect_batch(lambda _, batch: self.out.update(batch.rows())).probe()
        change = None
        for time in range(worker.resume_at, END):
            if worker.index == 0:
                if time in self.updates:
                    control.send([self.updates[time]], at=control.time + chance.randrange(2))
                if time in self.scales:
                    change = worker.scale(self.scales[time])
            some = [chance.randrange(40) for _ in range(3)]
            keys.send({"key": np.array(some), "one": np.ones(3, np.int64)})
            self.sent.update(some)
            keys.advance_to(time + 1)
            await probe.wait_passed(time - 1)
        while change is not None and not change.done:
            keys.advance_to(keys.time + 1)
            await probe.wait_passed(keys.time - 2)
        keys.close()
        await probe.wait_done()
        self.shapes[worker.index] = counts.handle.tree.names, counts.handle.configuration.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_counts_are_right_and_all_know_the_same_bins(seed: int) -> None:
    case = Shaped(seed)
    simulate(case.main, workers=case.workers, seed=seed, turns=200_000)
    last = {key: max(count for k, count in case.out if k == key) for key in case.sent}
    assert last == dict(case.sent)
    assert all(case.out[key, n] == 1 for key, count in case.sent.items() for n in range(1, count + 1))
    names, table = case.shapes[0]
    at = Counter(table[int(name[:-1].ljust(12, "0"), 2)] for name in names)
    assert len(at) == case.scales[15], "each worker has some bins"
    assert all(case.shapes[worker] == (names, table) for worker in at)
