"""Times at the end of 64 bits: state in columns has them up to one, and says so; nothing is lost, and nothing loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.errors import TimeError
from dataflow.state import native
from dataflow.state.tables.pending import LAST
from dataflow.testing import simulate
from megaphone import fold

assert LAST == 2**63 - 2
BATCH = {"k": np.array([1]), "v": np.array([LAST])}
SCHEMA: dict[str, Any] = {"state": {"n": "i8"}, "output": {"k": "i8", "n": "i8"}}


@fold(**SCHEMA, compiled=False)
def count(key: Any, value: Any, state: Any) -> Any:
    state.n += 1
    return key, state.n


@fold(**SCHEMA, pending={"a": "i8"}, compiled=False)
def put_off(time: Any, key: Any, value: Any, state: Any, emit: Any, later: Any) -> None:
    later.at(value, 5)


@fold(**SCHEMA, pending={"a": "i8"}, values={"a": "i8"}, compiled=False)
def due(key: Any, value: Any, state: Any) -> Any:
    return key, value


def put_off_batch(time: Any, batch: Any, state: Any, notificator: Any) -> Any:
    if len(batch):
        notificator.notify_at(batch["v"], batch["k"], a=5)
    return {"k": notificator.due["key"], "n": notificator.due["a"]}


def native_fold(control: Any, stream: Any) -> Any:
    return native.state_machine(stream, key="k", value="v", fold=count)


def native_later(control: Any, stream: Any) -> Any:
    return native.state_machine(stream, key="k", value="v", fold=put_off, due=due)


def native_batches(control: Any, stream: Any) -> Any:
    return native.unary(stream, key="k", fold=put_off_batch, state={"n": "i8"}, pending={"a": "i8"})


def migratable(control: Any, stream: Any) -> Any:
    return megaphone.state_machine(control, stream, key="k", value="v", fold=put_off, due=due, bins=4)


OPERATORS = [native_fold, native_later, native_batches, migratable]


def run(build: Any, batch: Any, at: int, then: int | None = None) -> list[Any]:
    out: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, updates = scope.input()
            handle, stream = scope.input()
            probe = build(updates, stream).inspect_batch(lambda time, b: out.append((time, list(b)))).probe()
        control.close()
        handle.send(batch, at=at)
        if then is not None:
            handle.advance_to(then)
            await probe.wait_passed(LAST)

    simulate(main, workers=1)
    return out


@pytest.mark.parametrize("at", [LAST + 1, 2**63, 2**64, 2**70])
@pytest.mark.parametrize("build", OPERATORS)
def test_records_that_come_too_late_are_refused_with_advice(build: Any, at: int) -> None:
    with pytest.raises(TimeError, match=rf"got records at {at}, and state in columns has times up to .*time='ms'"):
        run(build, BATCH, at)


@pytest.mark.parametrize("build", OPERATORS[1:])
def test_records_are_put_off_until_the_last_time_and_no_further(build: Any) -> None:
    assert run(build, BATCH, LAST - 1) == [(LAST, [(1, 5)])]
    with pytest.raises(TimeError, match=f"put off until {LAST + 1}, and the last time of state in columns is {LAST}"):
        run(build, {**BATCH, "v": np.array([LAST + 1])}, 0)


@pytest.mark.parametrize("build", OPERATORS[1:])
def test_an_input_may_go_on_beyond(build: Any) -> None:
    assert run(build, BATCH, 0, then=2**70) == [(LAST, [(1, 5)])]


def test_state_in_rows_has_any_times() -> None:
    assert run(lambda control, stream: native.state_machine(stream, fold=_last), [(1, 2)], 2**70) == [(2**70, [2])]


def _last(key: Any, value: Any, state: Any) -> Any:
    return value, [value]
