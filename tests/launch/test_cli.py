"""The command line: what it runs, and what it says to a wrong command."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from dataflow.__main__ import main
from dataflow.launch.hosts import ClusterError, read_secret
from tests.launch.arena import Arena

PROGRAM = """
    async def main(worker, *args):
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.exchange(lambda n: n).inspect(lambda time, n: print(worker.index, n, *args))
        handle.send(range(worker.index * 2, worker.index * 2 + 2))

    async def resumed(worker):
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.inspect(lambda time, n: print(worker.index, n))
        if worker.resume_at == 0:
            handle.send(range(2))

    class Nested:
        @staticmethod
        async def main(worker):
            print("nested", worker.index)

    def not_async(worker):
        pass

    number = 5
"""


@pytest.fixture
def program(arena: Arena) -> Arena:
    """An arena with a program, a secret and a file of hosts."""
    arena.write("program.py", PROGRAM)
    arena.write("broken.py", "import no_such_thing\n")
    secret = arena.folder / "secret"
    secret.write_text("0123456789abcdef" * 4)
    secret.chmod(0o600)
    (arena.folder / "hosts").write_text("127.0.0.1:21000\n127.0.0.1:21100  # the second\n")
    return arena


def test_a_program_with_arguments(program: Arena) -> None:
    ended = program.cli("run", "program:main", "--workers", "2", "a", "b", "--", "-c").end()
    assert (ended.status, ended.err) == (0, "")
    assert sorted(ended.out.splitlines()) == ["0 0 a b -c", "0 2 a b -c", "1 1 a b -c", "1 3 a b -c"]


def test_one_worker_and_a_nested_name(program: Arena) -> None:
    ended = program.cli("run", "program:Nested.main").end()
    assert (ended.status, ended.out, ended.err) == (0, "nested 0\n", "")


def test_a_secret(program: Arena) -> None:
    first, second = program.cli("secret"), program.cli("secret")
    assert re.fullmatch(r"[0-9a-f]{64}\n", first.end().out)
    assert first.end().out != second.end().out


def test_help(program: Arena) -> None:
    for arguments in (["--help"], ["run", "--help"]):
        ended = program.cli(*arguments).end()
        assert ended.status == 0 and "usage: python -m dataflow" in ended.out
    assert all(f"--{name}" in ended.out for name in ("workers", "hosts", "process", "secret", "listen", "cert"))


HOSTS = ["--hosts", "hosts", "--process", "0", "--secret", "secret"]
WRONG = {
    "no command": ([], "required"),
    "no such command": (["walk"], "invalid choice"),
    "no main": (["run", "program"], "module:main"),
    "no module": (["run", "no_such.module:main"], "there is no module 'no_such.module'"),
    "no such function": (["run", "program:start"], "there is no 'start' in program"),
    "not asynchronous": (["run", "program:not_async"], "async def main"),
    "not a function": (["run", "program:number"], "async def main"),
    "no workers": (["run", "program:main", "--workers", "0"], "at least 1"),
    "no number of workers": (["run", "program:main", "--workers", "two"], "--workers"),
    "an option of the program's": (["run", "program:main", "a", "--foo", "b"], "--foo; what is meant for the program"),
    "no limit": (["run", "program:main", "--limit", "0"], "at least 1"),
    "a process without hosts": (["run", "program:main", "--process", "0"], "--process is for several hosts"),
    "a secret without hosts": (["run", "program:main", "--secret", "secret"], "--secret is for several hosts"),
    "no process": (["run", "program:main", "--hosts", "hosts", "--secret", "secret"], "--process"),
    "no secret": (["run", "program:main", "--hosts", "hosts", "--process", "0"], "--secret"),
    "a process too many": (["run", "program:main", *HOSTS, "--process", "2"], "process 2 is not one of the 2 hosts"),
    "a negative process": (["run", "program:main", *HOSTS, "--process=-1"], "process -1 is not one of the 2 hosts"),
    "a file of hosts that is not there": (["run", "program:main", *HOSTS, "--hosts", "nowhere"], "cannot read nowhere"),
    "a secret that is not there": (["run", "program:main", *HOSTS, "--secret", "nowhere"], "cannot read nowhere"),
    "a folder for a secret": (["run", "program:main", *HOSTS, "--secret", "tmp"], "cannot read tmp"),
    "a certificate without a key": (["run", "program:main", *HOSTS, "--cert", "hosts"], "--cert, --key and --ca"),
}


class Command:
    """A command in this process, for those that go no further than their arguments."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int | str | None, str]:
        """The exit status, and the last line on standard error."""
        try:
            status: int | str | None = main(list(arguments))
        except SystemExit as exit:
            status = exit.code
        return status, self._capsys.readouterr().err.splitlines()[-1]


@pytest.fixture
def command(program: Arena, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Where the program is, and without traces of it afterwards."""
    monkeypatch.chdir(program.folder)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delitem(sys.modules, "program", raising=False)
    return Command(capsys)


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_commands(command: Command, arguments: list[str], message: str) -> None:
    status, told = command(*arguments)
    assert status == 2 and message in told


BAD_HOSTS = {
    "empty": (b"# nobody\n", "names no host"),
    "no port": (b"127.0.0.1\n", "line 1 .* '127.0.0.1'"),
    "no number": (b"127.0.0.1:80\n\nhost:port\n", "line 3 .* 'host:port'"),
    "a large port": (b"127.0.0.1:70000\n", "line 1"),
    "a digit that is no number": ("127.0.0.1:²\n".encode(), "line 1"),
    "twice": (b"127.0.0.1:80\n127.0.0.1:80\n", "twice"),
    "no text": (b"\xff\xfe\x00", "hosts"),
    "no port left for workers": (b"127.0.0.1:65535\n127.0.0.1:21000\n", "65535|ports"),
    "an unknown host": (b"no-such-host.invalid:80\n", "no-such-host.invalid"),
}


@pytest.mark.parametrize(("content", "message"), BAD_HOSTS.values(), ids=BAD_HOSTS)
def test_bad_files_of_hosts(program: Arena, command: Command, content: bytes, message: str) -> None:
    (program.folder / "hosts").write_bytes(content)
    status, told = command("run", "program:main", *HOSTS, "--wait", "1")
    assert status == 2 and re.search(message, told), told


def test_a_secret_that_others_can_read(program: Arena, command: Command) -> None:
    (program.folder / "secret").chmod(0o644)
    status, told = command("run", "program:main", *HOSTS)
    assert status == 2 and "chmod 600" in told


def test_a_secret_that_is_too_short(program: Arena, command: Command) -> None:
    (program.folder / "secret").write_text("short\n")
    status, told = command("run", "program:main", *HOSTS)
    assert status == 2 and "at least 16 bytes" in told


def test_the_network_is_only_listened_on_when_told(program: Arena, command: Command) -> None:
    (program.folder / "hosts").write_text("192.0.2.1:21000\n127.0.0.1:21100\n")
    status, told = command("run", "program:main", *HOSTS)
    assert status == 2 and "--listen 192.0.2.1" in told


def test_a_module_that_cannot_be_imported_says_why(program: Arena) -> None:
    ended = program.cli("run", "broken:main").end()
    assert ended.status != 0 and "No module named 'no_such_thing'" in ended.message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--every", "5"], "--every is for snapshots: say where they are kept, with --recovery"),
        (["--from", "before"], "--from is for snapshots"),
        (["--recovery", "state", "--every", "0"], "every= says after how many seconds"),
        (["--recovery", "state", "--restarts", "-1"], "restarts= must be at least 0"),
        (["--recovery", "state", "--fresh", "--from", "before"], "say one of them"),
    ],
)
def test_wrong_options_of_recovery(command: Command, options: list[str], said: str) -> None:
    status, told = command("run", "program:main", *options)
    assert status == 2 and said in told


def test_a_run_goes_on_where_it_was(program: Arena) -> None:
    # The second finds that the first has ended, and has nothing to do.
    for printed in ("0 0\n0 1\n", ""):
        ended = program.cli("run", "program:resumed", "--recovery", "state").end()
        assert (ended.status, ended.out, ended.err) == (0, printed, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize(("owner", "mode", "taken"), [
    (0, 0o600, True), (0, 0o640, False),  # our own file is for us alone
    (12345, 0o440, True), (12345, 0o444, False), (12345, 0o460, False),  # a manager's may be given to our group to read
])  # fmt: skip
def test_whose_secret_may_be_read_by_whom(tmp_path: Path, owner: int, mode: int, taken: bool) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"of the cluster\n")
    os.chown(path, owner, 0)
    path.chmod(mode)
    if taken:
        assert read_secret(path) == b"of the cluster"
    else:
        with pytest.raises(ClusterError, match="others can read"):
            read_secret(path)
