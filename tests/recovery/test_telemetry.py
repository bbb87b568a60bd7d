"""Migrations, snapshots, recoveries and changes of membership as spans, in a program that uses OpenTelemetry."""

from __future__ import annotations

import pytest

import dataflow
import megaphone
from dataflow.commands.families import Families, add_worker
from dataflow.run.readings import read_worker
from dataflow.run.telemetry import tell_span
from dataflow.run.worker import pump_of
from tests.members import app

trace = pytest.importorskip("opentelemetry.trace", reason="the extra `telemetry`, which make installs from the lock")


def add(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    """A running total."""
    return (total or 0) + one, [(key, (total or 0) + one)]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Where spans go, as in a program that has set up the SDK."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    found: list[object] = []

    class Into(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            found.extend(spans)  # type: ignore[call-overload]
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Into()))
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    return found


def test_what_happens_is_told_as_spans(spans: list[object]) -> None:
    failed = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("sums") as scope:
            control, updates = scope.input(name="control")
            feed, stream = scope.input(name="numbers")
            totals = megaphone.state_machine(updates, stream.map(lambda n: (n, 1)), fold=add, bins=8, name="totals")
            probe = totals.probe()
        controller = megaphone.Controller(control, totals)
        start = worker.resume_at
        for epoch in range(start, start + 40):
            feed.send([epoch])
            if epoch == start + 5 and worker.index == 0:
                controller.migrate(to=[1] * 8, strategy=megaphone.batched(4))
            feed.advance_to(epoch + 1)
            controller.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
            if epoch == start + 30 and worker.index == 0 and not failed:
                failed.append(epoch)
                raise ValueError("once")

    recovery = dataflow.Recovery("memory://spans", every=0.001)
    dataflow.execute(main, workers=2, in_process=True, recovery=recovery)
    by_name: dict[str, list[dict[str, object]]] = {}
    for span in spans:
        assert span.end_time >= span.start_time > 0  # type: ignore[attr-defined]
        by_name.setdefault(span.name, []).append(dict(span.attributes))  # type: ignore[attr-defined]
    assert {"dataflow.migration", "dataflow.snapshot", "dataflow.recovery"} <= by_name.keys()
    migrations = {each["dataflow.what"] for each in by_name["dataflow.migration"]}
    assert all(str(each).startswith("totals: batches of 4, 4 of 4 bins") for each in migrations)
    assert {each["dataflow.worker"] for each in by_name["dataflow.recovery"]} == {0, 1}
    assert all(str(each["dataflow.what"]).startswith("from ") for each in by_name["dataflow.recovery"])


def test_a_change_of_the_membership_is_a_span_and_is_counted(spans: list[object]) -> None:
    counted: dict[str, float] = {}

    async def main(worker: dataflow.Worker) -> None:
        await app.steered(worker, {20: 3, 60: 2}, 100)
        if worker.index == 0:
            found = Families()
            add_worker(found, ("app", "0"), read_worker(pump_of(worker)))
            counted.update({labels[-1]: value for labels, value in found["events"].samples})

    dataflow.execute(main, workers=2, in_process=True)
    told = [dict(span.attributes) for span in spans if span.name == "dataflow.membership"]  # type: ignore[attr-defined]
    assert [each["dataflow.what"] for each in told] == ["from 2 workers to 3", "from 3 workers to 2"]
    assert {each["dataflow.worker"] for each in told} == {0}
    assert counted["membership"] == 2


def test_a_span_has_its_own_beginning_and_end(spans: list[object]) -> None:
    tell_span(3, "snapshot", "x", 10.0, 12.5)
    (span,) = spans
    assert (span.start_time, span.end_time) == (10_000_000_000, 12_500_000_000)  # type: ignore[attr-defined]
    assert dict(span.attributes) == {"dataflow.worker": 3, "dataflow.what": "x"}  # type: ignore[attr-defined]
