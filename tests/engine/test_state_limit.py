"""A limit for state: a clear end before the system kills the process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trio

import dataflow
import megaphone
from dataflow.errors import StateTooLarge
from dataflow.recovery.memory import MemoryStorage
from dataflow.run import limits
from dataflow.state import native
from tests.engine.harness import failsafe


def remember(key: int, value: bytes, state: Any) -> Any:
    return (state or b"") + value, []


async def rows(worker: dataflow.Worker, most: Any) -> None:
    worker.limit_state(most)
    with worker.dataflow("orders") as scope:
        pairs, stream = scope.input()
        probe = native.state_machine(stream, fold=remember, name="remembered").probe()
    for time in range(100_000):
        pairs.send([(time % 7, b"x" * 1000)])
        pairs.advance_to(time + 1)
        await probe.wait_passed(time - 3)
        await trio.lowlevel.checkpoint()


@megaphone.fold(state={"n": "i8"}, compiled=False)
def note(key: int, value: int, state: Any) -> None:
    state.n += value


async def columns(worker: dataflow.Worker, most: Any) -> None:
    worker.limit_state(most)
    with worker.dataflow("orders") as scope:
        handle, stream = scope.input()
        probe = megaphone.state_machine(
            scope.control(), stream, key="k", value="v", fold=note, bins=16, name="remembered"
        ).probe()
    for time in range(100_000):
        handle.send({"k": np.arange(100) + 100 * time, "v": np.ones(100, "i8")})
        handle.advance_to(time + 1)
        await probe.wait_passed(time - 3)
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("main", [rows, columns], ids=lambda main: main.__name__)
@pytest.mark.parametrize("recovery", [False, True])
def test_it_ends_and_says_why(main: Any, recovery: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with recovery: it would grow again."""
    monkeypatch.setattr(limits, "LOOK_EVERY", 0)
    kept = dataflow.Recovery(MemoryStorage()) if recovery else None
    with failsafe(60), pytest.raises(StateTooLarge) as failure:
        dataflow.execute(main, "200 kB", workers=2, in_process=True, recovery=kept)
    text = str(failure.value)
    assert "of state, and its limit is 200.0 kB: 'remembered' of 'orders'" in text
    assert "Let keys expire (ttl=), spread them over more workers, or raise worker.limit_state" in text


def test_limits_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available", lambda: 1000)
    for text, size in (("50%", 500), ("2GB", 2 * 10**9), ("1 KiB", 1024), ("1.5mb", 1_500_000), (12, 12), ("7", 7)):
        assert limits.parse_limit(text) == size  # type: ignore[arg-type]
    for wrong in ("much", "-3", 0, "0%", 1.5, None, "3 apples"):
        with pytest.raises(ValueError, match="a limit is"):
            limits.parse_limit(wrong)  # type: ignore[arg-type]
    monkeypatch.undo()
    assert limits.available() > 1 << 20
