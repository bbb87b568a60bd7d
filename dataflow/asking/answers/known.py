"""All questions: those that are put to a run, and those that a run puts to its workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dataflow.asking.answers import save, who
from dataflow.asking.run import Answering, NamedRun

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

AT_RUN: Mapping[str, Answering[NamedRun]] = {"who": who.at_run, "save": save.at_run}
AT_WORKER: Mapping[str, Answering[Pump]] = {"save": save.at_worker}
