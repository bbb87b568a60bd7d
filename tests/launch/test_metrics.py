"""Metrics of a real run as Prometheus reads them; the documented list and the dashboard agree with them."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from dataflow.commands.families import LATENCY, NAMES, as_prometheus, families
from tests.launch.arena import ROOT, Arena

APP = """
import megaphone

def count(key, one, total):
    return (total or 0) + one, []

async def main(worker, flag):
    with worker.dataflow("a <b> & \\"c\\"") as scope:
        handle, stream = scope.input(name="numbers")
        pairs = stream.map(lambda n: (n, 1))
        probe = megaphone.state_machine(scope.control(), pairs, fold=count, bins=16, name="totals").probe()
    handle.send(list(range(50)))
    n = 0
    while not os.path.exists(flag):
        n += 1
        handle.advance_to(n)
        await probe.wait_passed(n - 1)
        if n == 20:
            print("begun", flush=True)
        await trio.sleep(0.002)
"""


def fetched(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture(autouse=True)
def _client() -> None:
    pytest.importorskip("prometheus_client", reason="the extra `metrics`, which make installs from the lock")


def test_one_address_has_all_workers_and_says_whether_they_are_well(arena: Arena) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    arena.write("app.py", APP)
    run = arena.cli("run", "app:main", "--workers", "2", "flag")
    exporter = arena.start([sys.executable, "-m", "dataflow", "metrics", "app", "--port", "0"])
    run.wait_for("begun")
    exporter.wait_for("/health")
    base = exporter.out.split("/metrics")[0]
    assert fetched(f"{base}/health") == (200, "all workers answer\n")
    assert fetched(f"{base}/elsewhere")[0] == 404
    metrics = {each.name: each for each in text_string_to_metric_families(fetched(f"{base}/metrics")[1])}
    assert {name.removesuffix("_total") for name in NAMES} == set(metrics)
    records = [sample for sample in metrics["dataflow_edge_records"].samples if sample.labels["operator"] == "totals F"]
    assert sum(sample.value for sample in records if sample.labels["input"] == "0") == 100
    assert {sample.labels["worker"] for sample in records} == {"0", "1"}
    assert {sample.labels["dataflow"] for sample in records} == {'a <b> & "c"'}
    assert sum(s.value for s in metrics["dataflow_state_shards"].samples) == 16
    assert any(s.name == f"{LATENCY}_count" and s.value > 0 for s in metrics[LATENCY].samples)
    (arena.folder / "flag").touch()
    assert run.end().status == 0
    status, why = fetched(f"{base}/health")
    assert status == 503 and "there is no run called 'app'" in why
    assert 'dataflow_up{run="app"} 0.0' in fetched(f"{base}/metrics")[1]
    exporter.process.terminate()
    exporter.process.wait(30)


def test_the_documented_list_is_the_list() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    documented = re.findall(r"^\| `(dataflow_\w+)`", page, re.MULTILINE)
    assert sorted(documented) == sorted(NAMES)
    assert {metric.name for metric in as_prometheus(families("app", None))} == {
        name.removesuffix("_total") for name in NAMES
    }


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    board = json.loads(Path(ROOT, "deploy", "grafana.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\bdataflow_\w+", target["expr"])
    }
    assert len(asked) > 10
    assert {name.removesuffix("_bucket") for name in asked} <= set(NAMES)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in board["panels"]})
