"""`window`: windows over event time whose state migrates: see `dataflow.windows`."""

from __future__ import annotations

from dataflow import Stream
from dataflow.events.moments import TimeOf
from dataflow.state.values import Value
from dataflow.time.durations import Duration
from dataflow.windows.aggregates import Wanted
from dataflow.windows.kinds import WindowKind
from dataflow.windows.operator import By, WindowPlan, key_of
from megaphone.assembly import INTERVAL, Migratable
from megaphone.control.updates import Update
from megaphone.operators import rows


def window(
    control: Stream[Update],
    stream: Stream[Value],
    kind: WindowKind,
    *,
    key: By = None,
    time: TimeOf | None = None,
    early: int | Duration | None = None,
    moments: bool | str = False,
    bins: int = 256,
    interval: float | Duration | None = INTERVAL,
    name: str = "window",
    **aggregates: Wanted,
) -> Migratable[Value]:
    """Aggregates of the records of each window, by key, as `dataflow.windows.window` has them; bins and single keys
    move with their open windows."""
    plan = WindowPlan(stream, kind, key, time, early, moments, name, aggregates)
    folded: Migratable[Value] = rows.unary(
        control,
        plan.prepare(stream),
        key=key_of,
        fold=plan.fold,
        state=dict,
        by_key=True,
        bins=bins,
        name=name,
        interval=interval,
    )
    return Migratable(plan.present(folded), folded.handle)
