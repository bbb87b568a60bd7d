"""Hosts from what a cluster manager says in the environment, in place of a file of hosts. Pure.

- `slurm` (or `slurm:PORT`): one process on each node of the step, as `srun --ntasks-per-node=1` starts them.
- `kubernetes:SERVICE:REPLICAS` (or `...:PORT`): the pods of a StatefulSet, with stable names in a service.
"""

from __future__ import annotations

from collections.abc import Mapping

from dataflow.launch.hosts import ClusterError
from dataflow.launch.nodelist import expand

PORT = 9000
MANAGERS = ("slurm", "kubernetes")


def names_manager(text: str) -> bool:
    """Whether it is the environment that knows the hosts, and not a file of that name.

    >>> names_manager("slurm"), names_manager("kubernetes:workers:3"), names_manager("./slurm")
    (True, True, False)
    """
    return text.partition(":")[0] in MANAGERS


def hosts_of_environment(text: str, environment: Mapping[str, str]) -> tuple[tuple[tuple[str, int], ...], int]:
    """Where everybody is, and which of them this process is."""
    manager, *rest = text.split(":")
    if manager == "slurm" and len(rest) <= 1:
        return _slurm(_port(rest, text), environment)
    if manager == "kubernetes" and len(rest) in (2, 3) and rest[0] and rest[1].isdecimal() and int(rest[1]) > 0:
        return _kubernetes(rest[0], int(rest[1]), _port(rest[2:], text), environment)
    raise ClusterError(f"--hosts is a file, slurm[:PORT] or kubernetes:SERVICE:REPLICAS[:PORT], and not {text!r}")


def _port(rest: list[str], text: str) -> int:
    if not rest:
        return PORT
    if not rest[0].isdecimal() or not 0 < int(rest[0]) < 65536:
        raise ClusterError(f"{rest[0]!r} in --hosts {text} is no port")
    return int(rest[0])


def _slurm(port: int, environment: Mapping[str, str]) -> tuple[tuple[tuple[str, int], ...], int]:
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    number = environment.get("SLURM_NODEID")
    if nodes is None or number is None:
        raise ClusterError(
            "--hosts slurm needs SLURM_JOB_NODELIST and SLURM_NODEID, which srun sets: start the program with "
            "srun --ntasks-per-node=1 python -m dataflow run ..."
        )
    names = expand(nodes)
    tasks = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS")
    if tasks is not None and tasks != str(len(names)):
        raise ClusterError(
            f"Slurm has started {tasks} tasks on {len(names)} nodes: start one on each (srun --ntasks-per-node=1), "
            "and say with --workers how many workers it has"
        )
    if not number.isdecimal() or int(number) >= len(names):
        raise ClusterError(f"SLURM_NODEID is {number!r}, and there are {len(names)} nodes in {nodes!r}")
    return tuple((name, port) for name in names), int(number)


def _kubernetes(
    service: str, replicas: int, port: int, environment: Mapping[str, str]
) -> tuple[tuple[tuple[str, int], ...], int]:
    pod = environment.get("POD_NAME") or environment.get("HOSTNAME") or ""
    name, dash, ordinal = pod.rpartition("-")
    if not dash or not name or not ordinal.isdecimal():
        raise ClusterError(
            f"--hosts kubernetes is for the pods of a StatefulSet, whose names end with a number, and POD_NAME "
            f"(or HOSTNAME) is {pod!r}"
        )
    if int(ordinal) >= replicas:
        raise ClusterError(
            f"this is pod {pod}, and --hosts says that there are {replicas}: with the replicas of the StatefulSet, "
            "change its command too"
        )
    return tuple((f"{name}-{number}.{service}", port) for number in range(replicas)), int(ordinal)
