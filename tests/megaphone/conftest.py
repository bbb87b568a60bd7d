"""Fixtures that several tests of migration use."""

from __future__ import annotations

from typing import Any

import pytest

from dataflow.state.pieces import Piece
from dataflow.state.stores.portions import Arriving
from tests.launch.conftest import arena as arena


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> list[Piece]:
    """Bins and keys of rows travel in pieces of a few bytes. Those that have arrived."""
    arrived: list[Piece] = []
    add = Arriving.add

    def note(self: Any, piece: Piece) -> bool:
        arrived.append(piece)
        return add(self, piece)

    monkeypatch.setattr(Arriving, "add", note)
    monkeypatch.setattr("megaphone.router.routing.PIECE", 1)
    monkeypatch.setattr("megaphone.router.routing.PIECES", 16)
    monkeypatch.setattr("dataflow.state.stores.portions._FIRST", 1)
    return arrived
