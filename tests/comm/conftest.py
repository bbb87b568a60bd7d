"""Where the certificates of a test run are kept, and a skip that says why when they cannot be made."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.comm.rig import RIGS, Rig


@pytest.fixture(scope="session", autouse=True)
def _certificates(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["TEST_CERTIFICATES"] = str(tmp_path_factory.mktemp("certificates"))


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
