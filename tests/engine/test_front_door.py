"""The lists of names that users and operator authors import."""

from __future__ import annotations

import subprocess
import sys

import dataflow
import dataflow.lowlevel

USERS = """
    Antichain Capability CapabilityError DataflowError EventWriter InputClosed InputHandle Probe Product Recovery Scope
    Stream TimeError Timestamp Worker execute execute_async read_events
"""

AUTHORS = """
    Antichain Batch Broadcast Capability ChangeBatch Context Domain Exchange Graph InputPort Keeps MessageCapability
    MutableAntichain Notificator OperatorBuilder OutputPort Pact Pipeline Source Summary Target ToWorker TotalAntichain
    Tracker binary could_result_in less_equal less_than make_tracker path_summaries stable_hash unary unary_notify
"""


def test_the_front_door() -> None:
    assert sorted(dataflow.__all__) == sorted(USERS.split())
    assert all(hasattr(dataflow, name) for name in dataflow.__all__)


def test_the_door_for_operator_authors() -> None:
    assert sorted(dataflow.lowlevel.__all__) == sorted(AUTHORS.split())
    assert all(hasattr(dataflow.lowlevel, name) for name in dataflow.lowlevel.__all__)


def test_a_worker_shows_programs_what_they_need() -> None:
    """The machinery is the pump's."""
    shown = [name for name in dir(dataflow.Worker) if not name.startswith("_")]
    assert shown == [
        "dataflow", "drain", "drop_dataflow", "explain", "index", "limit_state", "members", "peers", "resume_at",
        "room", "save", "saved", "saved_by_all", "scale", "show_loop", "step",
    ]  # fmt: skip


def test_every_name_says_what_it_is() -> None:
    for module in (dataflow, dataflow.lowlevel):
        assert all(getattr(module, name).__doc__ for name in module.__all__)


def test_what_takes_long_is_imported_when_somebody_asks_for_it() -> None:
    program = """
import sys
import dataflow
assert not {"trio", "numpy", "asyncio", "dataflow.run.pump"} & {*sys.modules}, sys.modules.keys()
assert {*dataflow.__all__} <= {*dir(dataflow)}
assert dataflow.columns.Columns and dataflow.Antichain.__module__ == "dataflow.time.antichain"
try:
    dataflow.nothing
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "module 'dataflow' has no attribute 'nothing'\n"
