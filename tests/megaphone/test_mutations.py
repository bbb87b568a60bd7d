"""The properties can fail: each rule of F and S that is broken on purpose is found out within a few cases."""

from __future__ import annotations

from typing import Any

import pytest

from megaphone import bins, routing, state
from tests.megaphone.cases import run_case

FEW = 150


def impatient(patch: pytest.MonkeyPatch) -> None:
    """F sends bins before S has applied everything that comes before."""
    start = routing.Router._start_due_migrations

    def send_at_once(self: Any) -> None:
        self._shared.nothing_before = lambda time: True
        start(self)

    patch.setattr(routing.Router, "_start_due_migrations", send_at_once)


def careless(patch: pytest.MonkeyPatch) -> None:
    """F routes by the latest configuration, not by the one at the record's time."""
    patch.setattr("megaphone.configuration.Configurations.at", lambda self, time: self.latest)


def hasty(patch: pytest.MonkeyPatch) -> None:
    """S does not wait for state that may still arrive at a time."""

    def apply_complete_times(self: Any) -> None:
        while (time := self._next_time()) is not None and not any(port.could_see(time) for port in self._inputs):
            self._apply_time(time)

    patch.setattr(state.Host, "_apply_complete_times", apply_complete_times)


def forgetful(patch: pytest.MonkeyPatch) -> None:
    """Pending records stay behind when their bin moves."""
    take = bins.RowBins.take

    def without_pending(self: Any, number: int) -> Any:
        self._pending.pop(number, None)
        return take(self, number)

    patch.setattr(bins.RowBins, "take", without_pending)


@pytest.mark.parametrize("break_it", [impatient, careless, hasty, forgetful])
def test_a_broken_rule_is_found_out(break_it: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    assert any(fails(seed) for seed in range(FEW))


def fails(seed: int) -> bool:
    """Whether a case fails: by a property, an assertion of the engine, or because it is stuck."""
    try:
        run_case(seed)
    except Exception:
        return True
    return False
