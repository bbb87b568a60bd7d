"""Several hosts with recovery: a failure on one of them, and all go back."""

from __future__ import annotations

import os
import re
import signal

from tests.launch.arena import Arena, Program, wait_until
from tests.launch.test_hosts import _ports

PROGRAM = """
    import pathlib
    HERE = pathlib.Path(__file__).parent

    def once(name):
        try:
            (HERE / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    async def main(worker, victim, how):
        seen = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream = stream.exchange(lambda n: n)
            stream.inspect(lambda time, n: seen.append(n))
            probe = stream.probe()
        handle.advance_to(worker.resume_at)
        print("life", worker.index, os.getpid())
        for time in range(worker.resume_at, 40):
            handle.send(range(time, time + 4))
            handle.advance_to(time + 1)
            await probe.wait_passed(time)
            if time == 20 and str(worker.index) == victim and (how == "always" or once("done")):
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ValueError("oh no")
        if how == "stay" and not (HERE / "end").exists():
            await trio.sleep_forever()
        return worker.resume_at, sum(seen)
"""
START = """
    import program
    from dataflow.launch.cluster import run_cluster
    from dataflow.launch.hosts import Cluster

    hosts = tuple(("127.0.0.1", int(port)) for port in sys.argv[2].split(","))
    cluster = Cluster(hosts, int(sys.argv[1]), 2, b"0123456789abcdef", wait=10)
    recovery = dataflow.Recovery("state", every=1000.0, restarts=2)
    print(run_cluster(program.main, tuple(sys.argv[3:]), cluster, Settings(patience=1, grace=0.5), recovery))
"""


class HostSet:
    """Two hosts with two workers each."""

    def __init__(self, arena: Arena, *arguments: str) -> None:
        self.arena = arena
        self.arguments = arguments
        self.ports = ",".join(map(str, _ports(2)))
        arena.write("program.py", PROGRAM)
        self.hosts = [self.start(0), self.start(1)]

    def start(self, process: int, name: str = "") -> Program:
        name = name or f"host{process}"
        return self.arena.script(START, str(process), self.ports, *self.arguments, name=name)


def require_right(out: str) -> None:
    """What four workers returned together is the sum of all records since the snapshot that they went on from."""
    found = [(int(start), int(total)) for start, total in re.findall(r"\((\d+), (\d+)\)", out.splitlines()[-1])]
    right = 4 * sum(n for time in range(found[0][0], 40) for n in range(time, time + 4))
    assert len(found) == 4 and sum(total for _, total in found) == right


def test_all_hosts_go_back_and_go_on(arena: Arena) -> None:
    hosts = HostSet(arena, "3", "kill").hosts
    for host in hosts:
        ended = host.end()
        assert ended.status == 0, ended.err
        require_right(ended.out)
    assert re.search(r"worker 3 was killed by.*: restart 1 of 2, from the beginning", hosts[0].err), hosts[0].err
    assert "all go back" in hosts[1].err


def test_enough_is_enough_on_all_hosts(arena: Arena) -> None:
    for host in HostSet(arena, "2", "always").hosts:
        ended = host.end()
        assert ended.status == 1
        assert "oh no" in ended.err and "3 times within 600 seconds" in ended.err, ended.err


def test_a_supervisor_that_is_killed_and_started_again(arena: Arena) -> None:
    hosts = HostSet(arena, "none", "stay")
    first, second = hosts.hosts
    for host in hosts.hosts:
        wait_until(lambda h=host: h.out.count("life") == 2, "the first life")  # type: ignore[misc]
    os.kill(second.pid, signal.SIGKILL)
    assert second.end().status == -signal.SIGKILL
    (arena.folder / "end").touch()
    another = hosts.start(1, "again")
    for host in (first, another):
        ended = host.end()
        assert ended.status == 0, ended.err
        require_right(ended.out)
    assert "is gone" in first.err and ": restart 1 of 2" in first.err


def test_ctrl_c_on_one_host_ends_all(arena: Arena) -> None:
    hosts = HostSet(arena, "none", "stay").hosts
    for host in hosts:
        wait_until(lambda h=host: h.out.count("life") == 2, "the first life")  # type: ignore[misc]
    hosts[1].interrupt()
    assert [host.end().status for host in hosts] == [1, -signal.SIGINT]
    assert "was told to end" in hosts[0].err
