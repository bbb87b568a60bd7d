"""Hooks: whoever knows an operator's name reaches its state, control and placement; `explain` lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.build.hooks import HookRegistry, Stateful, UnknownOperator
from dataflow.columns import Columns
from dataflow.errors import ConstructionError, TimeError
from dataflow.state import native
from dataflow.testing import simulate

BINS = 8
KEYS = list(range(40))


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"})
def tally(key: Any, state: Any) -> Any:
    state.count += 1
    return key, state.count


def count(time: int, records: list[int], state: dict[int, int], notificator: Any) -> list[tuple[int, int]]:
    for key, more in Counter(records).items():
        state[key] = state.get(key, 0) + more
    return [(key, state[key]) for key in sorted(set(records))]


def build(kind: str, configuration: Any, stream: Any, name: str = "count") -> dataflow.Stream[Any]:
    if kind == "rows":
        return megaphone.unary(configuration, stream, key=lambda key: key, fold=count, bins=BINS, name=name)
    if kind == "columns":
        return megaphone.state_machine(configuration, stream, key="key", fold=tally, bins=BINS, name=name)
    return native.state_machine(stream, key="key", fold=tally, name=name)


def send(kind: str, data: Any, keys: list[int]) -> None:
    data.send(keys if kind == "rows" else {"key": np.array(keys, np.int64)})


async def run(worker: dataflow.Worker, kind: str, ask: Callable[[dataflow.Worker, Stateful, Any], Any]) -> Any:
    """Counts every key once, then asks."""
    with worker.dataflow("counting") as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        probe = build(kind, configuration, stream).probe()
    if worker.index == 0:
        send(kind, data, KEYS)
    control.advance_to(1)
    data.advance_to(1)
    await probe.wait_passed(0)
    return ask(worker, scope.dataflow.hooks.named("count"), control)


@pytest.mark.parametrize("kind", ["rows", "columns", "native"])
def test_explain_lists_state_with_shards_bytes_and_workers(kind: str) -> None:
    def ask(worker: dataflow.Worker, operator: Stateful, control: Any) -> tuple[str, int]:
        return worker.explain(), int(operator.durable.sizes().sum())

    for text, size in simulate(run, kind, ask, workers=2, seed=1):
        (line,) = [line for line in text.splitlines() if "keeps state" in line]
        shards = 256 if kind == "native" else BINS
        assert size > 0 and f"count keeps state in {shards} shards, " in line and f"with about {size:,} bytes" in line
        assert ("; worker 0 has 4, worker 1 has 4" in line) == (kind != "native")


@pytest.mark.parametrize("kind", ["rows", "columns", "native"])
def test_what_is_copied_can_be_put_into_another(kind: str) -> None:
    """Every shard of a run, piece by piece, into an operator of the same description that has seen nothing."""

    def ask(worker: dataflow.Worker, operator: Stateful, control: Any) -> Any:
        durable = operator.durable
        durable.track_changes()
        return durable.describe(), [p for shard in durable.take_changed().tolist() for p in durable.copy(shard, 4)]

    ((description, pieces),) = simulate(run, kind, ask, workers=1)
    assert len(pieces) > 1

    async def restored(worker: dataflow.Worker) -> list[tuple[int, int]]:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            data, stream = scope.input()
            seen: list[Any] = []
            out = build(kind, configuration, stream)
            probe = out.inspect_batch(lambda _, batch: seen.extend(rows_of(batch))).probe()
        durable = scope.dataflow.hooks.named("count").durable
        assert durable.describe() == description
        for piece in reversed(pieces):
            durable.put(piece)
        send(kind, data, KEYS)
        data.close()
        control.close()
        await probe.wait_done()
        return seen

    (seen,) = simulate(restored, workers=1)
    assert sorted(seen) == [(key, 2) for key in KEYS]


def rows_of(batch: Any) -> list[tuple[int, int]]:
    return batch.rows() if isinstance(batch, Columns) else batch


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_an_update_from_outside_moves_state_or_is_refused(kind: str) -> None:
    async def main(worker: dataflow.Worker) -> list[int]:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            data, stream = scope.input("data")
            probe = build(kind, configuration, stream).probe()
        operator = scope.dataflow.hooks.named("count")
        assert operator.control is not None and operator.placement is not None
        assert list(operator.placement.members) == [0, 1]
        control.advance_to(1)
        data.advance_to(1)
        if worker.index == 0:
            with pytest.raises(megaphone.ControlError, match="there is no bin 8"):
                operator.control.accept(megaphone.Move(BINS, 1), at=3)
            with pytest.raises(TimeError, match="control is at 1 already"):
                operator.control.accept(megaphone.Move(0, 1), at=0)
            operator.control.accept(megaphone.Assign([1] * BINS), at=3)
        control.advance_to(4)
        data.advance_to(4)
        await probe.wait_passed(3)
        return operator.placement.workers().tolist()

    assert simulate(main, workers=2, seed=3) == [[1] * BINS] * 2


def test_a_control_stream_that_is_no_input_is_the_programs_own() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input()
            _, stream = scope.input()
            build("rows", configuration.filter(bool), stream)
        operator = scope.dataflow.hooks.named("count")
        assert operator.control is not None
        with pytest.raises(megaphone.ControlError, match="count: its control stream is not that of an input"):
            operator.control.accept(megaphone.Move(0, 0), at=3)

    simulate(main, workers=1)


def test_two_of_a_name_are_refused_when_somebody_asks() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input()
            _, stream = scope.input()
            for name in ("first", "second", "second"):
                build("rows", configuration, stream, name)
        hooks: HookRegistry = scope.dataflow.hooks
        assert [operator.name for operator in hooks] == ["first", "second", "second"]
        assert hooks.named("first").name == "first"
        with pytest.raises(ConstructionError, match="2 stateful operators are called 'second': give each a name="):
            hooks.named("second")
        with pytest.raises(UnknownOperator, match="no stateful operator 'third'; there are: 'first', 'second'"):
            hooks.named("third")

    simulate(main, workers=1)
