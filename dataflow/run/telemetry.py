"""Migrations, snapshots, recoveries and changes of membership as spans of OpenTelemetry, in programs that use it.

A program that has set up a tracer provider (in `main`, on each worker) gets a span for each; in any other program this
costs a look at the list of modules. The extra `telemetry` has the library.
"""

from __future__ import annotations

import sys

_LIBRARY = "dataflow"


def tell_span(worker: int, kind: str, text: str, began: float, ended: float) -> None:
    """A span from one moment to another, both in seconds since 1970."""
    if "opentelemetry.trace" not in sys.modules:
        return  # whoever wants spans has imported it
    from opentelemetry import trace

    attributes: dict[str, str | int] = {"dataflow.worker": worker, "dataflow.what": text}
    tracer = trace.get_tracer(_LIBRARY)
    span = tracer.start_span(f"dataflow.{kind}", attributes=attributes, start_time=int(began * 1e9))
    span.end(end_time=int(ended * 1e9))
