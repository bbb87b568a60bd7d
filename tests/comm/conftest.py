"""The transports as fixtures, and a skip that says why where one cannot be had."""

from __future__ import annotations

import shutil

import pytest

from tests.comm.rig import RIGS, Rig


@pytest.fixture(params=RIGS)
def rig(request: pytest.FixtureRequest) -> Rig:
    """Every transport."""
    return require(request.param)


@pytest.fixture(params=[name for name in RIGS if name != "in one process"])
def linked(request: pytest.FixtureRequest) -> Rig:
    """Every transport over which messages travel as bytes."""
    return require(request.param)


def require(name: str) -> Rig:
    """The transport of that name; a skip, with its reason, where it cannot be had."""
    if "TLS" in name and shutil.which("openssl") is None:
        pytest.skip("TLS is not tested: there is no openssl here to make certificates with")
    return RIGS[name]
