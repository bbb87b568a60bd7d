"""Several hosts, each a supervisor with its workers: on loopback, and in namespaces where the machine allows it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.comm.rig import certificates, free_ports
from tests.launch.arena import SOON, Arena, Ended, Program, wait_until

PROGRAM = """
    async def main(worker, *args):
        found = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.exchange(lambda n: n).inspect(lambda time, n: found.append((time, n))).probe()
        for epoch in range(5):
            handle.send(range(20))
            handle.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
        assert all(n % worker.peers == worker.index for _, n in found)
        print("worker", worker.index, "of", worker.peers, "found", len(found), *args)
        return len(found)

    async def endless(worker, fail_on="nobody"):
        with worker.dataflow() as scope:
            stream = scope.source(iter(int, 1), batch=10, ahead=4).map(lambda n: n + 1)
            stream.exchange(lambda n: n).broadcast().inspect(lambda *_: check(worker, fail_on), name="checked").probe()
        print("ready", worker.index)
        await trio.sleep_forever()

    def check(worker, fail_on):
        if str(worker.index) == fail_on:
            raise ValueError("the cause")

    async def different(worker):
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            (stream.map(str) if worker.index == 0 else stream.exchange(str)).probe()
        handle.send([1])
        await trio.sleep_forever()

    async def large(worker):
        return bytes(10 << 20)
"""
# Runs the program's function with a patience of its own, which the command line has no option for.
PATIENT = """
    import program
    from dataflow.launch.cluster import run_cluster
    from dataflow.launch.hosts import Cluster

    hosts = tuple(("127.0.0.1", int(port)) for port in sys.argv[3].split(","))
    cluster = Cluster(hosts, int(sys.argv[2]), 2, b"0123456789abcdef", wait=10)
    print(run_cluster(getattr(program, sys.argv[1]), tuple(sys.argv[4:]), cluster, Settings(patience=1, grace=0.5)))
"""


class Hosts:
    """Hosts that share an arena, a file and a secret."""

    def __init__(self, arena: Arena, count: int, workers: int = 2) -> None:
        self.arena = arena
        self.workers = workers
        self.ports = _ports(count)
        arena.write("program.py", PROGRAM)
        self.write("hosts", "".join(f"127.0.0.1:{port}\n" for port in self.ports))
        self.write("secret", "0123456789abcdef")

    def write(self, name: str, text: str) -> None:
        path = self.arena.folder / name
        path.write_text(text)
        path.chmod(0o600)

    def start(self, process: int, function: str = "main", *arguments: str, **options: str) -> Program:
        settings = {"hosts": "hosts", "secret": "secret", "workers": str(self.workers), "wait": "20", **options}
        chosen = [part for name, value in settings.items() for part in (f"--{name}", value)]
        command = ["run", f"program:{function}", *arguments, "--process", str(process), *chosen]
        return self.arena.cli(*command, name=f"host{process}")

    def start_all(self, function: str = "main", *arguments: str, **options: str) -> list[Program]:
        return [self.start(process, function, *arguments, **options) for process in range(len(self.ports))]

    def start_patient(self, function: str, *arguments: str) -> list[Program]:
        ports = ",".join(map(str, self.ports))
        return [
            self.arena.script(PATIENT, function, str(process), ports, *arguments, name=f"host{process}")
            for process in range(len(self.ports))
        ]


def _ports(count: int) -> list[int]:
    base = free_ports(10 * count)
    return [base + 10 * number for number in range(count)]


def wait_ready(hosts: list[Program]) -> None:
    """Until all workers of all hosts are at work."""
    for number, host in enumerate(hosts):
        for worker in range(2):
            host.wait_for(f"ready {2 * number + worker}")


def end_all(hosts: list[Program], within: float = 40) -> list[Ended]:
    return [host.end(within) for host in hosts]


# --------------------------------------------------------------------------------------------------------- normal ends


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_program_on_several_hosts(arena: Arena, count: int) -> None:
    hosts = Hosts(arena, count)
    peers = 2 * count
    for ended in end_all(hosts.start_all("main", "x", "y")):
        assert (ended.status, ended.err) == (0, "")
    for number in range(count):
        lines = sorted((arena.folder / f"host{number}.out").read_text().splitlines())
        found = {worker: sum(5 * peers for n in range(20) if n % peers == worker) for worker in range(peers)}
        assert lines == [f"worker {w} of {peers} found {found[w]} x y" for w in (2 * number, 2 * number + 1)]


def test_hosts_may_start_in_any_order(arena: Arena) -> None:
    hosts = Hosts(arena, 2, workers=1)
    late = hosts.start(1)
    wait_until(lambda: late.children(), "its worker")
    early = hosts.start(0)
    assert [ended.status for ended in end_all([early, late])] == [0, 0]


def test_every_host_gets_the_results_of_all(arena: Arena) -> None:
    hosts = Hosts(arena, 2)
    for ended in end_all(hosts.start_patient("main")):
        assert ended.status == 0, ended.err
        assert ended.out.splitlines()[-1] == "[100, 100, 100, 100]"


def test_results_that_are_larger_than_a_header_may_be(arena: Arena) -> None:
    hosts = Hosts(arena, 2)
    for ended in end_all(hosts.start_all("large")):
        assert (ended.status, ended.err) == (0, "")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="TLS is not tested: no openssl to make certificates with")
def test_tls(arena: Arena) -> None:
    good = certificates("good")
    options = {"cert": str(good.certificate), "key": str(good.key), "ca": str(good.authority)}
    for ended in end_all(Hosts(arena, 2).start_all(**options)):
        assert (ended.status, ended.err) == (0, "")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="TLS is not tested: no openssl to make certificates with")
@pytest.mark.parametrize("other", ["a stranger's certificate", "no certificate"])
def test_tls_with_somebody_who_may_not(arena: Arena, other: str) -> None:
    hosts = Hosts(arena, 2, workers=1)
    good, bad = certificates("good"), certificates("bad")
    options = {"cert": str(good.certificate), "key": str(good.key), "ca": str(good.authority)}
    theirs = {"cert": str(bad.certificate), "key": str(bad.key), "ca": str(good.authority)}
    first = hosts.start(0, wait="2", **options)
    second = hosts.start(1, wait="2", **(theirs if "stranger" in other else {}))
    told = ""
    for ended in end_all([first, second]):
        assert ended.status != 0 and ended.out == ""
        told += ended.err
    assert "certificate" in told.lower() or "ssl" in told.lower() or "tls" in told.lower(), told


# ------------------------------------------------------------------------------------------------------------ failures


@pytest.mark.parametrize("culprit", [0, 3])
def test_a_failure_is_told_on_all_hosts(arena: Arena, culprit: int) -> None:
    programs = Hosts(arena, 2).start_all("endless", str(culprit))
    for number, ended in enumerate(end_all(programs)):
        assert ended.status == 1
        assert "ValueError: the cause" in ended.message and f"worker {culprit}" in ended.message, ended.err
        if number == culprit // 2:
            assert "reported by" not in ended.message
        else:
            assert f"reported by host {culprit // 2}" in ended.message


@pytest.mark.parametrize("victim", [0, 3])
def test_a_worker_is_killed(arena: Arena, victim: int) -> None:
    programs = Hosts(arena, 2).start_all("endless")
    wait_ready(programs)
    os.kill(programs[victim // 2].children()[victim % 2], signal.SIGKILL)
    for ended in end_all(programs):
        assert ended.status == 1 and ended.seconds < 30
        assert f"worker {victim} was killed by signal 9" in ended.message


def test_a_host_is_killed(arena: Arena) -> None:
    # All of its processes at once, as when the power fails; its supervisor first, or that would tell.
    programs = Hosts(arena, 3).start_all("endless")
    wait_ready(programs)
    victims = [programs[1].pid, *programs[1].children()]
    for program in programs:
        program.mark_time()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    programs[1].end()
    for survivor in (programs[0], programs[2]):
        ended = survivor.end()
        assert ended.status == 1 and ended.seconds < SOON
        # Supervisors may not have met yet when workers are ready: then it is the workers who miss those of host 1.
        assert re.search(r"host 1, 127.0.0.1:\d+, with workers 2 to 3|worker [23] cannot be reached", ended.message)
        assert len(ended.err.splitlines()) == 1


def test_a_host_is_stopped(arena: Arena) -> None:
    programs = Hosts(arena, 2).start_patient("endless")
    wait_ready(programs)
    frozen = [programs[1].pid, *programs[1].children()]
    programs[0].mark_time()
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    ended = programs[0].end()
    assert ended.status == 1 and ended.seconds < SOON
    assert "host 1" in ended.message and "has not answered for 1 seconds" in ended.message
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    ended = programs[1].end()
    assert ended.status == 1 and "host 0" in ended.message


def test_an_interrupt_on_one_host_ends_the_other(arena: Arena) -> None:
    programs = Hosts(arena, 2).start_all("endless")
    wait_ready(programs)
    programs[1].mark_time()
    programs[0].interrupt()
    first, second = end_all(programs)
    assert (first.status, first.err) == (130, "dataflow: interrupted\n")
    assert second.status == 1 and second.seconds < SOON
    assert re.search("host 0, .* is gone|worker [01] cannot be reached", second.message), second.err


def test_a_host_whose_output_nobody_reads_is_not_taken_for_dead(arena: Arena) -> None:
    # As with `| less`: the pipe is full, and the computation goes on.
    arena.write(
        "program.py",
        """
        async def chatty(worker):
            if worker.index == 0:
                print("x" * 200_000)
            await trio.sleep(3)
            return worker.index
        """,
    )
    hosts = Hosts.__new__(Hosts)
    hosts.arena, hosts.ports = arena, _ports(2)
    read, write = os.pipe()
    ports = ",".join(map(str, hosts.ports))
    first = arena.script(PATIENT, "chatty", "0", ports, name="host0", stdout=write)
    second = arena.script(PATIENT, "chatty", "1", ports, name="host1")
    os.close(write)
    try:
        wait_until(lambda: second.process.poll() is not None, "the second host", 8)
        assert "has not answered" not in second.err
    finally:
        with open(read, "rb") as pipe:
            pipe.read()
        end_all([first, second])


# --------------------------------------------------------------------------------------- hosts that do not fit together


def test_another_secret(arena: Arena) -> None:
    hosts = Hosts(arena, 2, workers=1)
    hosts.write("other", "fedcba9876543210")
    first, second = hosts.start(0, wait="2"), hosts.start(1, wait="2", secret="other")
    ended = second.end()
    assert ended.status != 0 and re.search("does not know the secret", ended.err)
    ended = first.end()
    assert ended.status != 0 and "worker 1" in ended.err
    assert re.search("from 127.0.0.1: .* may have another secret .compare the files of --secret", ended.err)


@pytest.mark.parametrize("difference", ["hosts", "workers"])
def test_hosts_that_were_started_differently(arena: Arena, difference: str) -> None:
    hosts = Hosts(arena, 2, workers=1)
    hosts.write("other", "".join(f"127.0.0.1:{port}\n" for port in [*hosts.ports, hosts.ports[1] + 10]))
    options = {"hosts": "other"} if difference == "hosts" else {"workers": "2"}
    first, second = hosts.start(0, wait="2"), hosts.start(1, wait="2", **options)
    told = ""
    for ended in end_all([first, second]):
        assert ended.status == 1 and ended.out == ""
        assert len(ended.err.splitlines()) < 12, f"not one clear message:\n{ended.err}"
        told += ended.err
    assert "another computation: compare the host files and --workers" in told


def test_hosts_that_build_different_dataflows_are_both_told(arena: Arena) -> None:
    programs = Hosts(arena, 2, workers=1).start_all("different")
    for ended in end_all(programs):
        assert ended.status == 1
        assert "GraphMismatch" in ended.message or "dataflow" in ended.message.removeprefix("dataflow:")
        assert "map" in ended.message and "exchange" in ended.message, ended.err


def test_a_host_that_never_comes(arena: Arena) -> None:
    ended = Hosts(arena, 2).start(0, wait="1").end()
    assert ended.status == 1 and ended.seconds < SOON
    assert "after 1 seconds: still missing" in ended.message
    assert "host 1" in ended.message or "worker 2, worker 3" in ended.message


def test_strangers_do_not_end_a_computation(arena: Arena) -> None:
    hosts = Hosts(arena, 2)
    first = hosts.start(0)
    strangers = []
    for port in range(hosts.ports[0], hosts.ports[0] + 3):  # the supervisor and its workers

        def connects(port: int = port) -> bool:
            try:
                strangers.append(socket.create_connection(("127.0.0.1", port)))
            except OSError:
                return False
            return True

        wait_until(connects, f"a listener at {port}")
        strangers[-1].sendall(b"GET / HTTP/1.1\r\n\r\n" * 20)
        strangers.append(socket.create_connection(("127.0.0.1", port)))  # this one says nothing at all
    second = hosts.start(1)
    for ended in end_all([first, second]):
        assert ended.status == 0, ended.err
    assert "turned away a connection from 127.0.0.1: whoever connected does not speak this protocol" in first.err
    for stranger in strangers:
        stranger.close()


def test_ports_that_are_taken(arena: Arena) -> None:
    hosts = Hosts(arena, 2, workers=1)
    with socket.create_server(("127.0.0.1", hosts.ports[0] + 1)):  # where the first worker would listen
        ended = hosts.start(0, wait="5").end()
    assert ended.status == 2 and ended.seconds < SOON
    assert f"cannot listen on 127.0.0.1:{hosts.ports[0] + 1}" in ended.message


# --------------------------------------------------------------------------------------------------- network namespaces


class Network:
    """Two namespaces with a wire between them."""

    def __init__(self) -> None:
        self.names = [f"dft{os.getpid()}{side}" for side in "ab"]
        self.addresses = ["10.213.7.1", "10.213.7.2"]

    def __enter__(self) -> Network:
        try:
            for name in self.names:
                _ip("netns", "add", name)
            _ip("link", "add", "veth0", "netns", self.names[0], "type", "veth", "peer", "veth1", "netns", self.names[1])
            for number, (name, address) in enumerate(zip(self.names, self.addresses, strict=True)):
                _ip("-n", name, "addr", "add", f"{address}/24", "dev", f"veth{number}")
                _ip("-n", name, "link", "set", f"veth{number}", "up")
                _ip("-n", name, "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def cut(self) -> None:
        """Pulls the plug: nobody is told, packets just stop."""
        _ip("-n", self.names[1], "link", "set", "veth1", "down")

    def start(self, hosts: Hosts, number: int, function: str) -> Program:
        command = ["run", f"program:{function}", "--hosts", "hosts", "--secret", "secret", "--workers", "2"]
        command += ["--process", str(number), "--listen", self.addresses[number], "--wait", "20"]
        inside = ["ip", "netns", "exec", self.names[number], sys.executable, "-m", "dataflow", *command]
        return hosts.arena.start(inside, name=f"host{number}")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@pytest.fixture
def network() -> Iterator[Network]:
    """A skip that says why, where namespaces are not to be had."""
    try:
        network = Network().__enter__()
    except FileNotFoundError:
        pytest.skip("hosts in network namespaces are NOT tested: there is no `ip` command here")
    except subprocess.CalledProcessError as error:
        why = error.stderr.strip()
        pytest.skip(f"hosts in network namespaces are NOT tested: this machine does not allow it ({why})")
    try:
        yield network
    finally:
        network.__exit__()


def _spread(hosts: Hosts, network: Network) -> None:
    hosts.write("hosts", "".join(f"{address}:9000\n" for address in network.addresses))


def test_hosts_in_namespaces(arena: Arena, network: Network) -> None:
    hosts = Hosts(arena, 2)
    _spread(hosts, network)
    for ended in end_all([network.start(hosts, number, "main") for number in range(2)]):
        assert (ended.status, ended.err) == (0, "")


def test_a_wire_that_is_cut(arena: Arena, network: Network) -> None:
    hosts = Hosts(arena, 2)
    _spread(hosts, network)
    programs = [network.start(hosts, number, "endless") for number in range(2)]
    wait_ready(programs)
    for program in programs:
        program.mark_time()
    network.cut()
    for number, ended in enumerate(end_all(programs)):
        assert ended.status == 1
        assert f"host {1 - number}, {network.addresses[1 - number]}:9000" in ended.message, ended.err
        assert ended.seconds < 5 + SOON
