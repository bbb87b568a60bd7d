"""State that was saved with other fields, or in another number of bins, is converted or refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import megaphone
from dataflow import Recovery, Worker
from dataflow.build.cuts import StateMismatch
from dataflow.columns import Columns
from dataflow.recovery.memory import MemoryStorage
from dataflow.state import native
from dataflow.testing import simulate

KEYS = np.arange(40)
Upgrade = Callable[[Columns], dict[str, object]]


def old_fold() -> megaphone.Fold:
    @megaphone.fold(state={"count": "i8"}, output={"key": "u8", "count": "i8"}, compiled=False)
    def count(key, value, state):  # type: ignore[no-untyped-def]
        state.count += value
        return key, state.count

    return count


def new_fold(upgrade: Upgrade | None) -> megaphone.Fold:
    state, output = {"total": "i8", "seen": "i8"}, {"key": "u8", "both": "i8"}

    @megaphone.fold(state=state, output=output, compiled=False, upgrade=upgrade)
    def count(key, value, state):  # type: ignore[no-untyped-def]
        state.total += value
        state.seen += 1
        return key, 1000 * state.total + state.seen

    return count


def convert(old: Columns) -> dict[str, object]:
    return {"key": old["key"], "total": old["count"] * 2, "seen": np.full(len(old), 7)}


def run(storage: MemoryStorage, fold: megaphone.Fold, bins: int, workers: int, migratable: bool) -> dict[int, int]:
    """Adds one to each key, on a run that goes on from what is in the storage; what came out, by key."""
    results: dict[int, int] = {}

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input("numbers")
            options = {"key": "key", "value": "one", "fold": fold, "name": "counts"}
            if migratable:
                out = megaphone.state_machine(scope.control(), stream, bins=bins, **options)
            else:
                out = native.state_machine(stream, **options)

            def keep(_: object, batch: Columns) -> None:
                keys, values = (batch[name].tolist() for name in ("key", "both" if "both" in fold.output else "count"))
                results.update(zip(keys, values, strict=True))

            out.inspect_batch(keep)
        if worker.index == 0:
            numbers.send({"key": KEYS, "one": np.ones(len(KEYS), "i8")})
        numbers.advance_to(worker.resume_at + 1)

    simulate(main, workers=workers, seed=1, recovery=Recovery(storage, every=1.0))
    return results


@pytest.mark.parametrize("migratable", [False, True])
@pytest.mark.parametrize(("bins", "workers"), [(8, 2), (32, 3)])
def test_an_upgrade_converts_state(migratable: bool, bins: int, workers: int) -> None:
    storage = MemoryStorage()
    assert run(storage, old_fold(), 8, 2, migratable) == dict.fromkeys(KEYS.tolist(), 1)
    assert run(storage, new_fold(convert), bins, workers, migratable) == dict.fromkeys(KEYS.tolist(), 1000 * 3 + 8)
    # What was converted is saved as it is now: no upgrade is needed any more, and nothing of the old state comes back.
    assert run(storage, new_fold(None), bins, 1, migratable) == dict.fromkeys(KEYS.tolist(), 1000 * 4 + 9)


def test_without_an_upgrade_both_lists_are_told() -> None:
    storage = MemoryStorage()
    run(storage, old_fold(), 8, 1, True)
    with pytest.raises(StateMismatch, match=r"'counts' was saved as .*field count: int64.* has .*field total: int64"):
        run(storage, new_fold(None), 8, 1, True)


def test_an_upgrade_that_forgets_a_field_is_told() -> None:
    storage = MemoryStorage()
    run(storage, old_fold(), 8, 1, True)
    with pytest.raises(StateMismatch, match="needs seen as well"):
        run(storage, new_fold(lambda old: {"key": old["key"], "total": old["count"]}), 8, 1, True)


def test_a_name_that_is_gone_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    storage = MemoryStorage()
    run(storage, old_fold(), 8, 1, True)

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input("numbers")
            native.state_machine(stream, key="key", value="one", fold=old_fold(), name="count")

    with pytest.raises(StateMismatch, match=r"state of an operator 'counts'.* did 'counts' become 'count'\?"):
        simulate(main, workers=1, seed=1, recovery=Recovery(storage))
    simulate(main, workers=1, seed=1, recovery=Recovery(storage, drop=("counts",)))
