"""A run on several hosts is asked on host 0: workers of all hosts answer, and metrics have them at one address."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from tests.launch.arena import Arena, wait_until
from tests.launch.test_hosts import Hosts, wait_ready
from tests.launch.test_metrics import fetched

FOLLOWING = """
    from dataflow import sources

    async def following(worker):
        with worker.dataflow() as scope:
            scope.source(sources.lines("lines", follow=True)).exchange(len).inspect(lambda *_: None)
        print("ready", worker.index)
"""


def ask(arena: Arena, *words: str) -> str:
    """A command, and what it says."""
    ended = arena.cli(*words).end()
    assert ended.status == 0, ended.err
    return ended.out


def test_all_workers_of_all_hosts_answer_at_one_address(arena: Arena) -> None:
    pytest.importorskip("prometheus_client", reason="the extra `metrics`, which make installs from the lock")
    from prometheus_client.parser import text_string_to_metric_families

    hosts = Hosts(arena, 3)
    running = hosts.start_all("endless", name="far")
    wait_ready(running)
    exporter = arena.start([sys.executable, "-m", "dataflow", "metrics", "far", "--port", "0"])
    exporter.wait_for("/health")
    address = exporter.out.split()[0].removesuffix("/metrics")
    code, text = fetched(f"{address}/metrics")
    assert code == 200
    found = {family.name: family.samples for family in text_string_to_metric_families(text)}
    workers = {str(worker) for worker in range(6)}
    for name in ("dataflow_worker_up", "dataflow_worker_busy_seconds", "dataflow_edge_records"):
        assert {sample.labels["worker"] for sample in found[name]} == workers, name
    assert all(sample.value == 1 for sample in found["dataflow_worker_up"])
    assert fetched(f"{address}/health") == (200, "all workers answer\n")

    status = json.loads(ask(arena, "status", "far", "--json"))
    assert [worker["worker"] for worker in status["workers"]] == [*range(6)] and not status["silent"]
    assert len({worker["pid"] for worker in status["workers"]}) == 6
    assert all(f"worker {worker} of 6" in ask(arena, "explain", "far") for worker in (0, 5))
    ask(arena, "trace", "far", "--seconds", "0.2", "--to", "trace.json")
    events = json.loads((arena.folder / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} >= {*range(6)}

    running[2].process.kill()  # the others end, as they do without recovery
    assert [host.end().status for host in running] == [1, 1, -9]
    assert fetched(f"{address}/health")[0] == 503
    exporter.process.terminate()
    exporter.process.wait(30)


def test_a_host_that_begins_again_is_asked_again(arena: Arena) -> None:
    """With recovery all hosts go back when a worker dies: questions are refused meanwhile, and answered afterwards."""
    hosts = Hosts(arena, 2)
    arena.write("program.py", FOLLOWING)
    (arena.folder / "lines").mkdir()
    (arena.folder / "lines" / "a.txt").write_text("one\n")
    running = hosts.start_all("following", name="again", recovery="state")
    wait_ready(running)
    before = json.loads(ask(arena, "status", "again", "--json"))
    pids = {worker["worker"]: worker["pid"] for worker in before["workers"]}
    assert {*pids} == {0, 1, 2, 3}
    os.kill(pids[3], signal.SIGKILL)

    def back() -> bool:
        ended = arena.cli("status", "again", "--json").end()
        if ended.status:
            return False
        now = {worker["worker"]: worker["pid"] for worker in json.loads(ended.out)["workers"]}
        return {*now} == {*pids} and not {*now.values()} & {*pids.values()}

    wait_until(back, "other workers in their places", 60)
    for host in running:
        host.interrupt()
    for host in running:
        assert host.end().status == 130
