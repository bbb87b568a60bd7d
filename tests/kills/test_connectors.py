"""A sample of kills of programs with connectors; `make soak` goes on with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kills.connectors import run_case

SERVERS = {"kafka": "kafka_server", "nats": "nats_server", "valkey": "valkey_server", "postgres": "postgres"}


def test_connectors_through_kills(request: pytest.FixtureRequest, s3_bucket: str, tmp_path: Path) -> None:
    addresses = {name: request.getfixturevalue(fixture) for name, fixture in SERVERS.items()}
    run_case(0, {**addresses, "bucket": f"s3://{s3_bucket}"}, tmp_path)
