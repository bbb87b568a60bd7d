"""Hosts that join a run and leave it: on loopback, and in namespaces where the machine allows it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.arena import READY, Arena, Program, wait_until
from tests.launch.test_hosts import Hosts, Network, network

__all__ = ["network"]

PROGRAM = """
    from pathlib import Path
    from tests.members.app import build, judge

    async def main(worker):
        handle, probe, sent, out = build(worker)
        print("ready", worker.index)
        time = worker.resume_at
        while not Path("stop").exists():
            handle.send([time % 7])
            time += 1
            handle.advance_to(time)
            await probe.wait_passed(time - 2)
        handle.close()
        await probe.wait_done()
        if worker.index == 0:
            judge(sent, out)
            print("all of", sum(sent.values()), "are right")
"""


class Joining(Hosts):
    """A run that others join."""

    def __init__(self, arena: Arena, count: int, workers: int = 2) -> None:
        super().__init__(arena, count, workers)
        arena.write("program.py", PROGRAM)

    def join(self, name: str, workers: int = 1, **options: str) -> Program:
        settings = {"secret": "secret", "workers": str(workers), "wait": "20", "join": f"127.0.0.1:{self.ports[0]}"}
        chosen = [part for option, value in {**settings, **options}.items() for part in (f"--{option}", value)]
        return self.arena.cli("run", "program:main", *chosen, name=name)

    def members(self) -> str:
        command = [sys.executable, "-m", "dataflow", "members", "program"]
        asked = subprocess.run(
            command, cwd=self.arena.folder, env=self.arena.environment, capture_output=True, text=True, check=False
        )
        return asked.stdout.partition(", as of")[0].strip()

    def scale(self, workers: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dataflow", "scale", "program", str(workers)]
        here, there = self.arena.folder, self.arena.environment
        return subprocess.run(
            command, cwd=here, env=there, capture_output=True, text=True, check=False, timeout=60
        )

    def wait_members(self, *workers: int) -> None:
        wanted = f"workers {', '.join(map(str, workers))}"
        wait_until(lambda: self.members() == wanted, lambda: f"{wanted}: {self.members()}", READY)

    def stop(self) -> None:
        (self.arena.folder / "stop").touch()


def leave(host: Program) -> None:
    """Told to end, a host moves its state away, leaves, and ends well."""
    os.kill(host.pid, signal.SIGTERM)
    ended = host.end(READY)
    assert (ended.status, ended.err) == (0, "")


def finish(run: Program) -> None:
    ended = run.end(READY)
    assert (ended.status, ended.err) == (0, "") and "are right" in ended.out


def test_hosts_join_a_run_of_one_host_and_leave(arena: Arena) -> None:
    hosts = Joining(arena, 1)
    (run,) = hosts.start_all()
    run.wait_for("ready 1")
    guest = hosts.join("guest", workers=2)
    guest.wait_for("ready 3")
    hosts.wait_members(0, 1, 2, 3)
    other = hosts.join("other")  # whom the first guests are connected with, too
    other.wait_for("ready 4")
    leave(guest)
    hosts.wait_members(0, 1, 4)
    hosts.stop()
    finish(run)
    assert other.end(READY).status == 0


def test_a_host_of_several_leaves_and_another_joins(arena: Arena) -> None:
    hosts = Joining(arena, 2)
    first, second = hosts.start_all()
    second.wait_for("ready 3")
    first.wait_for("ready 0")
    guest = hosts.join("guest")
    guest.wait_for("ready 4")
    leave(second)
    hosts.wait_members(0, 1, 4)
    hosts.stop()
    finish(first)
    assert guest.end(READY).status == 0


def test_on_several_hosts_a_worker_is_not_started_by_itself(arena: Arena) -> None:
    hosts = Joining(arena, 2, workers=1)
    programs = hosts.start_all()
    for number, program in enumerate(programs):
        program.wait_for(f"ready {number}")
    asked = hosts.scale(4)
    assert asked.returncode == 1 and "start one more: python -m dataflow run ... --join 127.0.0.1:" in asked.stderr
    hosts.stop()
    for program in programs:
        assert program.end(READY).status == 0


def test_a_guest_that_is_killed_ends_the_run_and_is_named(arena: Arena) -> None:
    hosts = Joining(arena, 1, workers=1)
    (run,) = hosts.start_all()
    guest = hosts.join("guest")
    guest.wait_for("ready 1")
    os.kill(guest.pid, signal.SIGKILL)
    ended = run.end(READY)
    assert ended.status == 1 and "worker 1 cannot be reached any more" in ended.message
    guest.end()


def test_the_second_signal_ends_a_host_at_once(arena: Arena) -> None:
    hosts = Joining(arena, 1, workers=1)
    (run,) = hosts.start_all()
    guest = hosts.join("guest")
    guest.wait_for("ready 1")
    (leader,) = run.workers(1)
    os.kill(leader, signal.SIGSTOP)  # nobody can be let go
    (worker,) = guest.workers(1)
    os.kill(guest.pid, signal.SIGTERM)
    wait_until(lambda: _waits(worker), "the guest's worker to wait for the leader")
    assert _told_again(guest) == 143
    os.kill(leader, signal.SIGCONT)
    assert run.end(READY).status == 1


def _told_again(host: Program) -> int:
    """Its exit status. Signals that come close together are one to the system: then it is told once more."""
    for _ in range(5):  # in less than the time after which it would lose the leader
        os.kill(host.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return host.process.wait(1.0)
    raise AssertionError(f"the host has not ended:\n{host.err}")


def _waits(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_what_cannot_join_says_so(arena: Arena) -> None:
    hosts = Joining(arena, 1, workers=1)
    nobody = hosts.join("nobody", wait="0.2").end()
    assert nobody.status == 1 and f"cannot be reached at 127.0.0.1:{hosts.ports[0]} after 0.2 s" in nobody.message
    (run,) = hosts.start_all()
    run.wait_for("ready 0")
    hosts.write("other", "another secret that nobody knows")
    stranger = hosts.join("stranger", secret="other", wait="5").end()
    assert stranger.status == 1 and "does not know the secret" in stranger.message
    for options, message in [
        ({"join": "10.1.2.3:4"}, "say --listen ADDRESS, one that they can reach"),
        ({"process": "1"}, "--join joins a run that others have started: leave out --process"),
    ]:
        ended = hosts.join("misuse", **options).end()
        assert ended.status == 2 and message in ended.err
    hosts.stop()
    assert run.end(READY).status == 0


@pytest.mark.parametrize("count", [1, 2])
def test_hosts_join_and_leave_in_namespaces(arena: Arena, network: Network, count: int) -> None:
    hosts = Joining(arena, count)
    hosts.write("hosts", "".join(f"{address}:9000\n" for address in network.addresses[:count]))
    programs = [network.start(hosts, number, "main") for number in range(count)]
    for number, program in enumerate(programs):
        program.wait_for(f"ready {2 * number + 1}")
    command = ["run", "program:main", "--join", f"{network.addresses[0]}:9000", "--secret", "secret"]
    command += ["--listen", network.addresses[1], "--wait", "20"]
    inside = ["ip", "netns", "exec", network.names[1], sys.executable, "-m", "dataflow", *command]
    guest = arena.start(inside, name="guest")
    guest.wait_for(f"ready {2 * count}")
    for program in programs[1:]:
        leave(program)
    leave(guest)
    hosts.stop()
    finish(programs[0])


def test_a_run_that_keeps_snapshots_grows_by_a_host_and_by_itself(arena: Arena) -> None:
    hosts = Joining(arena, 1, workers=1)
    (run,) = hosts.start_all(recovery="state")
    run.wait_for("ready 0")
    bare = hosts.join("bare").end(READY)
    assert bare.status == 2 and "it keeps snapshots: say --recovery" in bare.err
    assert hosts.scale(2).returncode == 0
    guest = hosts.join("guest", recovery="state")
    guest.wait_for("ready 2")
    hosts.wait_members(0, 1, 2)
    refused = hosts.scale(4)
    assert refused.returncode == 1 and "workers of another host have joined" in refused.stderr
    leave(guest)
    hosts.stop()
    finish(run)
