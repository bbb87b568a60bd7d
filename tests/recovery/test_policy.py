"""What users say about recovery: checked where they say it, and plain data."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

import dataflow
from dataflow.comm import codec
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.policy import as_recovery


def test_a_place_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recovery = as_recovery("state/")
    assert recovery == dataflow.Recovery(tmp_path / "state") == as_recovery(tmp_path / "state")
    assert recovery is not None and recovery.where == os.path.join(tmp_path, "state")  # workers may be elsewhere
    assert (recovery.every, recovery.keep, recovery.restarts) == (10.0, 3, 5)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert as_recovery("~/state") == recovery  # no shell has seen it
    assert as_recovery(None) is None and as_recovery(recovery) is recovery


def test_it_travels_as_plain_data() -> None:
    recovery = dataflow.Recovery("s3://bucket/prefix", every=2, drop=["old"], start_from="s")  # type: ignore[arg-type]
    assert codec.decode(codec.encode(recovery)) == recovery
    assert recovery.drop == ("old",) and recovery.every == 2.0
    assert replace(recovery, keep=7).keep == 7
    storage = MemoryStorage()
    assert dataflow.Recovery(storage).where is storage


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"where": ""}, ValueError, "a place for snapshots"),
        ({"where": "s3:/bucket/prefix"}, ValueError, r"s3: is no folder, and no address either: write s3://\.\.\."),
        ({"where": 3}, TypeError, "snapshots are kept in a folder"),
        ({"where": b"x"}, TypeError, "snapshots are kept in a folder"),
        ({"every": 0}, ValueError, "every= says after how many seconds a snapshot is made: more than 0, not 0"),
        ({"every": "10"}, TypeError, "every= is a number of seconds, not '10'"),
        ({"every": True}, TypeError, "every= is a number of seconds"),
        ({"window": math.inf}, ValueError, "window="),
        ({"give_up_after": math.nan}, ValueError, "give_up_after="),
        ({"keep": 0}, ValueError, "keep= must be at least 1, not 0"),
        ({"keep": 1.5}, TypeError, "keep= is a whole number"),
        ({"restarts": -1}, ValueError, "restarts= must be at least 0"),
        ({"fresh": "yes"}, TypeError, "fresh= is a bool"),
        ({"drop": (1,)}, TypeError, "drop= names operators"),
        ({"drop": ("",)}, TypeError, "drop= names operators"),
        ({"start_from": None}, TypeError, "start_from= is a str"),
        ({"fresh": True, "start_from": "s"}, ValueError, "say one of them"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, object], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        dataflow.Recovery(**{"where": "state", **given})  # type: ignore[arg-type]


def test_recovery_is_a_place_or_a_policy() -> None:
    with pytest.raises(TypeError, match=r"recovery= is where snapshots are kept .* not 5"):
        as_recovery(5)  # type: ignore[arg-type]
