"""NEXMark's events made on a cluster: the same as here, whatever the number of tasks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from nexmark.events import files, payload
from nexmark.events.config import Config
from nexmark.events.generator import COLUMNS, Generator
from tests.spark.test_cluster import ENVIRONMENT, LONG, SETTINGS

ROOT = Path(__file__).resolve().parents[2]


def generate(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nexmark", "generate", "--out", str(out), "--on", "spark", *options]
    environment = {**os.environ, **ENVIRONMENT, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONG)


def test_a_local_cluster_makes_the_same_events(tmp_path: Path) -> None:
    settings = [each for each in SETTINGS if "executor.memory" not in each]
    events = ["--events", "12,345", "--seed", "7", "--rate", "1e4", "--group", "10", "--payload", "full"]
    cluster = ["--master", "local-cluster[2,1,1024]", "--tasks", "3", *settings]
    done = generate(tmp_path / "there", *events, *cluster)
    assert done.returncode == 0, done.stderr
    assert "bid.parquet: 11,357 rows" in done.stdout and "12,345 events" in done.stdout
    files.write(tmp_path / "here", Generator(Config(seed=7, rate=10_000, group=10), payload="full"), 12_345)
    columns = {kind: [*plain, *payload.COLUMNS[kind]] for kind, plain in COLUMNS.items()}
    here, there = (files.read(tmp_path / place, columns) for place in ("here", "there"))
    assert files.count(tmp_path / "there") == 12_345 and len(files.parts(tmp_path / "there" / "bid.parquet")) == 3
    for kind, names in columns.items():
        for name in names:
            one, other = here[kind][name], there[kind][name]
            same = one.equals(other) if isinstance(one, pa.Array) else np.array_equal(one, other)
            assert same, (kind, name)


def test_what_makes_no_sense_is_refused_before_spark_starts(tmp_path: Path) -> None:
    done = generate(tmp_path, "--events", "10", "--conf", "spark.executor.memory")
    assert done.returncode == 2 and "--conf is KEY=VALUE" in done.stderr
    plain = [sys.executable, "-m", "nexmark", "generate", "--out", str(tmp_path), "--events", "10", "--tasks", "2"]
    refused = subprocess.run(plain, cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == 2 and "--tasks is for a cluster: say --on spark" in refused.stderr
