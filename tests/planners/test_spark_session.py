"""What is said before Spark starts: Java, the master, the options. No session is needed for these."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from planners.spark import session
from planners.spark.command import main


def fake_java(folder: Path, says: str) -> dict[str, str]:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


@pytest.mark.parametrize(
    ("says", "version"), [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "21" 2023-09-19 LTS', 21)]
)
def test_java_that_is_new_enough(tmp_path: Path, says: str, version: int) -> None:
    assert session.check_java(fake_java(tmp_path, says)) == version


@pytest.mark.parametrize(
    ("says", "message"),
    [('java version "1.8.0_392"', "is Java 8"), ('openjdk version "11.0.2"', "is Java 11"), ("what?", "does not say")],
)
def test_java_that_is_too_old_or_is_none(tmp_path: Path, says: str, message: str) -> None:
    with pytest.raises(session.SparkUnavailable, match=message):
        session.check_java(fake_java(tmp_path, says))


def test_java_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(session.SparkUnavailable, match=r"no `java` on the PATH.*JAVA_HOME"):
        session.check_java({"PATH": str(tmp_path)})
    with pytest.raises(session.SparkUnavailable, match=r"JAVA_HOME is .*no bin/java"):
        session.check_java({"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]", "local-cluster[2,1,1024]"])
def test_local_masters_need_no_network(master: str) -> None:
    session.check_master(master)


def test_a_master_that_answers_and_one_that_does_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        session.check_master(f"spark://127.0.0.1:{port}")
        session.check_master(f"k8s://https://127.0.0.1:{port}")
    for master in (
        f"spark://127.0.0.1:{port}",
        f"k8s://127.0.0.1:{port}",
        f"spark://127.0.0.1:{port},127.0.0.1:{port}",
    ):
        with pytest.raises(session.SparkUnavailable, match=f"no Spark master answers.*127.0.0.1:{port}"):
            session.check_master(master)


@pytest.mark.parametrize("master", ["mesos://x", "local[]", "localhost:7077", ""])
def test_what_is_no_master(master: str) -> None:
    with pytest.raises(session.SparkUnavailable, match="is no master"):
        session.check_master(master)


def test_yarn_needs_its_settings() -> None:
    with pytest.raises(session.SparkUnavailable, match="HADOOP_CONF_DIR"):
        session.check_master("yarn", {})
    session.check_master("yarn", {"YARN_CONF_DIR": "/etc/hadoop"})


def test_a_second_master_under_spark_submit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(session.SparkUnavailable, match="of its own"):
        session.start("local[2]")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--tau", "0.5"], "--logs is needed"),
        (["run", "--logs", "x"], "--tau is needed"),
        (["run", "--logs", "x", "--tau", "-1"], "tau is"),
        (["run", "--logs", "x", "--tau", "0.5", "--gamma", "1"], "gamma is"),
        (["run", "--logs", "x", "--tau", "0.5", "--nodes", "5:3"], "from 5 to 3"),
        (["run", "--logs", "x", "--tau", "0.5", "--capacity", "0"], "capacity"),
        (["project", "--tau", "0.5", "--tolerance", "0"], "--tolerance"),
        (["project", "--tau", "0.5", "--master", "nowhere"], "is no master"),
    ],
)
def test_options_are_checked_before_spark_starts(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--out", "nowhere"]) == 2
    assert message in capsys.readouterr().err
