"""What lies in deploy/: against the published schema, and against what the program understands."""

from __future__ import annotations

import shlex
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

import dataflow
from dataflow.__main__ import _parser
from dataflow.launch.environment import hosts_of_environment

DEPLOY = Path(dataflow.__file__).parents[1] / "deploy"
TEXTS = [path.read_text() for path in sorted(DEPLOY.glob("kubernetes/*.yaml"))]
MANIFESTS = [document for text in TEXTS for document in yaml.safe_load_all(text)]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=[each["kind"] for each in MANIFESTS])
def test_manifests_fit_the_schema(manifest: dict[str, object]) -> None:
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_a_wrong_manifest_is_found() -> None:
    wrong = yaml.safe_load(yaml.safe_dump(MANIFESTS[1]))
    wrong["spec"]["replica"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def by_kind(kind: str) -> dict[str, dict[str, object]]:
    return next(each for each in MANIFESTS if each["kind"] == kind)


def test_the_command_of_the_pods_is_understood() -> None:
    of = by_kind("StatefulSet")["spec"]
    (container,) = of["template"]["spec"]["containers"]  # type: ignore[index]
    options = _parser().parse_args([*container["command"][3:], *container["args"]])
    hosts, process = hosts_of_environment(options.hosts, {"POD_NAME": "pipeline-2"})
    assert len(hosts) == of["replicas"] and process == 2
    service = by_kind("Service")
    assert (
        hosts[0][0] == f"pipeline-0.{service['metadata']['name']}" and of["serviceName"] == service["metadata"]["name"]
    )
    ports = {each["port"] for each in service["spec"]["ports"]}  # type: ignore[union-attr,attr-defined,index]
    assert ports == {hosts[0][1] + number for number in range(options.workers + 1)}
    health = {each["name"]: each["containerPort"] for each in container["ports"]}["health"]
    assert options.health == f"0.0.0.0:{health}"
    (runtime,) = (each["value"] for each in container["env"] if each["name"] == "XDG_RUNTIME_DIR")
    assert runtime in {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert {container[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe")} == {"/ready"}
    policy = by_kind("NetworkPolicy")["spec"]["ingress"][0]["ports"][0]  # type: ignore[index]
    assert (policy["port"], policy["endPort"]) == (min(ports), max(ports))


def test_the_batch_script_is_understood(tmp_path: Path) -> None:
    script = DEPLOY / "slurm" / "dataflow.sbatch"
    (tmp_path / "srun").write_text('#!/bin/bash\nprintf "%s " "$1" "$2"\nshift 2\nexec "$@"\n')
    (tmp_path / "python").write_text('#!/bin/bash\nprintf "%q " "$@"\n')
    for name in ("srun", "python"):
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_CPUS_PER_TASK": "8"}
    said = subprocess.run(["bash", str(script)], env=environment, capture_output=True, text=True, check=True).stdout
    assert "--cpus-per-task=8" in shlex.split(said)[:2], "srun does not inherit it"
    options = _parser().parse_args(shlex.split(said)[4:])
    assert options.hosts == "slurm" and options.workers == 8 and options.program == "pipeline:main"


def test_the_container_has_what_is_installed() -> None:
    """All that it copies is there, and it copies all packages: one that is missing would be found by users."""
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    copied = {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert all((DEPLOY.parent / name).exists() for name in copied)
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    packages = {name.removesuffix(".*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages | {"pyproject.toml", "README.md", "LICENSE", "requirements.lock"} == copied


def test_the_unit_of_systemd_is_understood() -> None:
    unit = ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "dataflow@.service")
    shell, flag, script = shlex.split(unit["Service"]["ExecStart"])
    assert (shell, flag) == ("/bin/sh", "-c")
    said = script.partition(" -m dataflow ")[2].replace("%i", "app").replace("$OPTIONS", "--workers 2 --recovery /x")
    options = _parser().parse_args(shlex.split(said.replace("$PROGRAM", "mymodule:main")))
    assert (options.program, options.name, options.workers) == ("mymodule:main", "app", 2)
    assert unit["Service"]["RestartPreventExitStatus"] == "2" and unit["Service"]["SuccessExitStatus"] == "143"
