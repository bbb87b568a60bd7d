"""The properties can fail: each rule of F and S that is broken on purpose is found out within a few cases."""

from __future__ import annotations

from typing import Any

import pytest

from dataflow.state import host
from dataflow.state.stores import portions, row_bins
from megaphone.router import routing
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
    patch.setattr("megaphone.control.configuration.Configurations.at", lambda self, time: self.latest)


def hasty(patch: pytest.MonkeyPatch) -> None:
    """S does not wait for state that may still arrive at a time."""

    def is_complete(self: Any, time: Any) -> bool:
        return not any(port.could_see(time) for port in self._inputs)

    patch.setattr(host.Host, "_is_complete", is_complete)


def forgetful(patch: pytest.MonkeyPatch) -> None:
    """Pending records stay behind when their bin moves."""
    depart = row_bins.RowBins.depart

    def without_pending(self: Any, to: Any, limit: int) -> Any:
        self._pending.pop(to.place, None)
        return depart(self, to, limit)

    patch.setattr(row_bins.RowBins, "depart", without_pending)


def in_pieces(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("megaphone.router.routing.PIECE", 1)
    patch.setattr("megaphone.router.routing.PIECES", 16)
    patch.setattr("dataflow.state.stores.portions._FIRST", 1)


def eager(patch: pytest.MonkeyPatch) -> None:
    """S installs a bin of which pieces are missing."""
    in_pieces(patch)

    def add(self: Any, piece: Any) -> bool:
        try:
            return bool(really(self, piece)) or self.state is not portions.NO_STATE
        except Exception:
            return False

    really = portions.Arriving.add
    patch.setattr(portions.Arriving, "add", add)


def disorderly(patch: pytest.MonkeyPatch) -> None:
    """S takes pieces as they come, and not in the order of their numbers."""
    in_pieces(patch)
    really = portions.Arriving.add

    def add(self: Any, piece: Any) -> bool:
        return really(self, piece._replace(at=self._next))

    patch.setattr(portions.Arriving, "add", add)


def reckless(patch: pytest.MonkeyPatch) -> None:
    """F gives up its capability when the first pieces have left."""
    in_pieces(patch)
    send = routing.Router._send_pieces

    def send_pieces(self: Any, capability: Any) -> bool:
        if send(self, capability):
            return True
        later = capability.delayed(capability.time + 1)
        while not send(self, later):
            pass
        later.drop()
        return True

    patch.setattr(routing.Router, "_send_pieces", send_pieces)


@pytest.mark.parametrize("break_it", [impatient, careless, hasty, forgetful, eager, disorderly, reckless])
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
