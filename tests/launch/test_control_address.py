"""A run with `--control`: every command reaches it over the network, with its secret alone."""

from __future__ import annotations

import json
import socket

import pytest

from tests.comm.rig import free_ports
from tests.launch.arena import Arena
from tests.launch.test_looking import APP, Told, told  # noqa: F401 (a fixture)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_is_asked_over_the_network(arena: Arena, told: Told, workers: str) -> None:  # noqa: F811
    arena.write("counting.py", APP)
    port = free_ports(1)
    for name, text in (("secret", "0123456789abcdef" * 4), ("other", "fedcba9876543210" * 4)):
        (arena.folder / name).write_text(text)
        (arena.folder / name).chmod(0o600)
    at, secret = f"127.0.0.1:{port}", str(arena.folder / "secret")
    options = ("--workers", workers, "--name", "app", "--control", at, "--secret", "secret")
    run = arena.cli("run", "counting:main", "flag", *options)
    run.wait_for("begun")
    there = (at, "--secret", secret)

    status = json.loads(told("status", *there, "--json")[1])
    assert status["run"]["name"] == "app" and len(status["workers"]) == int(workers)
    assert told("get", at, "totals", "7", "--secret", secret) == (0, "4\n", "")
    assert "holds" in told("explain", *there)[1]
    assert told("members", *there)[1].startswith("workers 0")
    assert "idle" in told("profile", *there, "--seconds", "0.1")[1]
    assert "app: " in told("top", *there, "--every", "0.1", "--frames", "2")[1]
    moved = told("migrate", *there, "--operator", "totals", "--to", "worker:0", "--strategy", "batched:4")
    assert moved[0] == 0 and "bins moved" in moved[1]

    with socket.create_connection(("127.0.0.1", port)) as hostile:
        hostile.sendall(b"GET / HTTP/1.1\r\n" + b"x" * 100)
        code, out, err = told("stop", at, "--secret", str(arena.folder / "other"))
        assert (code, out) == (1, "") and "does not know the secret: compare the files of --secret" in err
        assert told("status", "app")[0] == 0, "the socket is there as well"
    assert told("stop", *there) == (0, f"{at} has stopped\n", "")
    ended = run.end()
    assert ended.status == 143
    assert "--control turned away a connection from 127.0.0.1" in ended.err
    assert "no run can be reached at" in told("status", *there)[2]


def test_what_cannot_be_right(arena: Arena, told: Told) -> None:  # noqa: F811
    (arena.folder / "secret").write_text("0123456789abcdef" * 4)
    (arena.folder / "secret").chmod(0o600)
    secret = str(arena.folder / "secret")
    for command, message in (
        (("status", "127.0.0.1:9400"), "127.0.0.1:9400 is asked over the network, with its secret: give --secret FILE"),
        (("status", "app", "--secret", secret), "--secret is for a run at HOST:PORT, and 'app' is a name on this host"),
        (
            ("save", "here:there", "x", "--secret", secret),
            "should be host:port, and is 'here:there'",
        ),
        (("scale", "127.0.0.1:9400", "3", "--secret", "nowhere"), "cannot read nowhere: No such file or directory"),
        (
            ("status", "127.0.0.1:9400", "--secret", secret, "--cert", secret),
            "TLS needs --cert, --key and --ca",
        ),
        (("status", "../app"), "a run cannot be called '../app'"),
        (("scale", "app", "0"), "a run has one worker or more, not 0; python -m dataflow stop RUN ends it"),
        (("run", "json:loads", "--control", "127.0.0.1:1"), "main must be"),
    ):
        status, out, err = told(*command)
        assert (status, out) == (2, "") and err.startswith("dataflow: ") and message in err, err
    for given, message in (
        (("--control", "127.0.0.1:1"), "--control lets in whoever knows a secret: give --secret FILE"),
        (("--control", "nowhere", "--secret", secret), "--control should be host:port, and is 'nowhere'"),
        (("--control", "1.2.3.4:1", "--secret", secret), "cannot listen on 1.2.3.4:1 for --control"),
        (("--secret", secret), "--secret is for several hosts"),
        (("--join", "127.0.0.1:1", "--secret", secret, "--control", "127.0.0.1:1"), "leave out --control"),
    ):
        status, out, err = told("run", "examples.hello:main", *given)
        assert (status, out) == (2, "") and message in err, err
