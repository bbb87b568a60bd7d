"""Slurm's lists of nodes: lists that are made together with what they stand for, and those that make no sense."""

from __future__ import annotations

import random

import pytest

from dataflow.launch.environment import hosts_of_environment, names_manager
from dataflow.launch.hosts import ClusterError
from dataflow.launch.nodelist import expand


def random_range(chance: random.Random) -> tuple[str, list[str]]:
    low, count, width = chance.randrange(120), chance.randint(1, 5), chance.randint(1, 4)
    numbers = [f"{number:0{width}d}" for number in range(low, low + count)]
    return (numbers[0] if count == 1 else f"{numbers[0]}-{low + count - 1}"), numbers


def random_term(chance: random.Random) -> tuple[str, list[str]]:
    """A term and its names: text and brackets in turn, each combination of numbers."""
    text, names = "", [""]
    for _ in range(chance.randint(1, 3)):
        word = "".join(chance.choices("abn-._", k=chance.randint(1, 3)))
        text, names = text + word, [name + word for name in names]
        if chance.random() < 0.7:
            ranges = [random_range(chance) for _ in range(chance.randint(1, 3))]
            text += f"[{','.join(part for part, _ in ranges)}]"
            names = [name + number for name in names for _, numbers in ranges for number in numbers]
    return text, names


@pytest.mark.parametrize("seed", range(200))
def test_lists_stand_for_what_they_were_made_of(seed: int) -> None:
    chance = random.Random(seed)
    terms = [random_term(chance) for _ in range(chance.randint(1, 4))]
    text = chance.choice([",", " ", "\n"]).join(term for term, _ in terms)
    assert expand(text) == [name for _, names in terms for name in names]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("login", ["login"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[001-003,7]", ["n001", "n002", "n003", "n7"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("n[1-2]-ib,m", ["n1-ib", "n2-ib", "m"]),
        ("r[0-1]n[0-1]", ["r0n0", "r0n1", "r1n0", "r1n1"]),
        ("[1-2]", ["1", "2"]),
    ],
)
def test_lists_from_the_manual(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("n[1-3", "brackets .* do not match"),
        ("n1-3]", "brackets .* do not match"),
        ("n[[1]]", "brackets .* do not match"),
        ("n[]", r"'' in 'n\[\]' is no number"),
        ("n[a-b]", "'a-b' in .* is no number"),
        ("bgl[123x456]", "'123x456' in .* is no number, and no range"),
        ("n[3-1]", "goes from 3 down to 1"),
        ("n[1-]", "'1-' in .* is no number"),
        ("a,,b", "nothing between two commas"),
        (",a", "nothing between two commas, or before the first"),
        ("n[0-99999999]", "stands for more than 65,536 nodes"),
        ("n[0-9999]m[0-9999]", "stands for more than 65,536 nodes"),
        ("n[99999999999999999999]", "is no number"),
        ("n[١-٢]", "is no number"),
    ],
)
def test_lists_that_make_no_sense_are_refused(text: str, why: str) -> None:
    with pytest.raises(ClusterError, match=why):
        expand(text)


def test_hosts_from_slurm() -> None:
    told = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_STEP_NODELIST": "n[2-3]", "SLURM_NODEID": "1", "SLURM_NTASKS": "2"}
    assert hosts_of_environment("slurm", told) == ((("n2", 9000), ("n3", 9000)), 1)
    del told["SLURM_STEP_NODELIST"]
    with pytest.raises(ClusterError, match="2 tasks on 4 nodes: start one on each"):
        hosts_of_environment("slurm", told)
    assert hosts_of_environment("slurm:77", {**told, "SLURM_NTASKS": "4"})[0][3] == ("n4", 77)
    with pytest.raises(ClusterError, match="which srun sets"):
        hosts_of_environment("slurm", {})
    with pytest.raises(ClusterError, match="SLURM_NODEID is '4', and there are 4"):
        hosts_of_environment("slurm", {**told, "SLURM_NTASKS": "4", "SLURM_NODEID": "4"})


def test_hosts_from_kubernetes() -> None:
    hosts, process = hosts_of_environment("kubernetes:pipeline:3:81", {"HOSTNAME": "my-pipe-2"})
    assert hosts == tuple((f"my-pipe-{i}.pipeline", 81) for i in range(3)) and process == 2
    assert hosts_of_environment("kubernetes:p:9", {"HOSTNAME": "x", "POD_NAME": "a-8"})[1] == 8
    with pytest.raises(ClusterError, match="this is pod a-3, and --hosts says that there are 3"):
        hosts_of_environment("kubernetes:p:3", {"POD_NAME": "a-3"})
    for pod in ("", "deployment-5d4f", "-3"):
        with pytest.raises(ClusterError, match="whose names end with a number"):
            hosts_of_environment("kubernetes:p:3", {"POD_NAME": pod})
    for wrong in ("kubernetes", "kubernetes:p", "kubernetes:p:0", "kubernetes::3", "slurm:1:2"):
        assert names_manager(wrong)
        with pytest.raises(ClusterError, match="--hosts is a file"):
            hosts_of_environment(wrong, {"POD_NAME": "a-1"})
    with pytest.raises(ClusterError, match="'x' in --hosts slurm:x is no port"):
        hosts_of_environment("slurm:x", {})
