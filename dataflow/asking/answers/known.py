"""All questions: those that are put to a run, and those that a run puts to its workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dataflow.asking.answers import (
    bins,
    explain,
    get,
    holding,
    loads,
    loops,
    migrate,
    ready,
    save,
    scale,
    status,
    stop,
    trace,
    who,
)
from dataflow.asking.run import Answering, NamedRun

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

AT_RUN: Mapping[str, Answering[NamedRun]] = {
    "who": who.at_run,
    "status": status.at_run,
    "explain": explain.at_run,
    "holding": holding.at_run,
    "bins": bins.at_run,
    "loops": loops.at_run,
    "trace": trace.at_run,
    "get": get.at_run,
    "loads": loads.at_run,
    "migrate": migrate.at_run,
    "save": save.at_run,
    "stop": stop.at_run,
    "scale": scale.scale_at_run,
    "drain": scale.drain_at_run,
    "members": scale.members_at_run,
}
AT_WORKER: Mapping[str, Answering[Pump]] = {
    "status": status.at_worker,
    "explain": explain.at_worker,
    "holding": holding.at_worker,
    "bins": bins.at_worker,
    "loops": loops.at_worker,
    "trace": trace.at_worker,
    "get": get.at_worker,
    "loads": loads.at_worker,
    "migrate": migrate.at_worker,
    "save": save.at_worker,
    "ready": ready.at_worker,
    "scale": scale.scale_at_worker,
    "drain": scale.drain_at_worker,
    "members": scale.members_at_worker,
    "guests": scale.guests_at_worker,
    "absent": scale.absent_at_worker,
}
