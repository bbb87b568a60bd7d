"""The machine on which the numbers were taken, and the processor time that its host withheld."""

import os
import platform
from pathlib import Path
from typing import TypedDict


class Machine(TypedDict):
    cpu: str
    cores: int  # that this process may use, which in a container are fewer than the host's
    memory: int  # bytes
    python: str
    platform: str


def describe() -> Machine:
    return Machine(
        cpu=_cpu(),
        cores=_usable_cores(),
        memory=_memory(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=platform.platform(),
    )


def stolen() -> int:
    """Nanoseconds for which this machine's processors had work and their host ran something else, since it was
    started; 0 where nobody says. A stall of that kind is in the latencies of a run, and not of its program."""
    try:
        ticks = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
    except (OSError, IndexError):
        return 0
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def one_line(machine: Machine) -> str:
    """The machine in one line, for people."""
    cores = "1 core" if machine["cores"] == 1 else f"{machine['cores']} cores"
    return f"{machine['cpu']}, {cores}, {machine['memory'] / 2**30:.0f} GiB, {machine['python']}"


def _cpu() -> str:
    """The model's name where Linux tells it; elsewhere what the platform module knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
