"""The parts by themselves: packages, ports, orders, outcomes, and the way home."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import subprocess
import sys
import types
import zipfile
from functools import partial
from pathlib import Path

import pytest
import trio

from dataflow.errors import CannotTravel, ExecutorLost, NotAsGuest, Terminated, WorkerFailed
from dataflow.launch.host_lives import ElsewhereFailed
from dataflow.launch.printer import Printer
from dataflow.launch.process import Settings
from dataflow.launch.verdict import Unaccounted
from dataflow.recovery.policy import Recovery
from dataflow.spark.home import Home
from dataflow.spark.job import explain
from dataflow.spark.order import GuestOrder, ShippedMain, open_main, pack_main
from dataflow.spark.outcome import Handed, decode_handed, encode_handed, judge
from dataflow.spark.phone import ERR, OUT
from dataflow.spark.shipping import MOST, pack
from dataflow.spark.task import hold_ports, run_guest, unpack

SECRET = b"0123456789abcdef"


# Packages


def names_in(archive: bytes) -> set[str]:
    return set(zipfile.ZipFile(io.BytesIO(archive)).namelist())


def test_the_engine_and_the_programs_own_modules_go_and_installed_ones_do_not(tmp_path: Path) -> None:
    (tmp_path / "lonely_helper.py").write_text("x = 1\n")
    (tmp_path / "folder_of_ours").mkdir()
    for name in ("__init__.py", "deep.py", "table.csv", ".hidden"):
        (tmp_path / "folder_of_ours" / name).write_text("")
    sys.path.insert(0, str(tmp_path))
    try:
        packages = pack(["lonely_helper", "folder_of_ours"])
    finally:
        sys.path.remove(str(tmp_path))
        for name in ("lonely_helper", "folder_of_ours"):
            sys.modules.pop(name, None)
    inside = names_in(packages.archive)
    assert {
        "dataflow/spark/task.py",
        "lonely_helper.py",
        "folder_of_ours/deep.py",
        "folder_of_ours/table.csv",
    } <= inside
    assert not any(name.startswith(("numpy", "pytest", "trio", "os.py")) or ".hidden" in name for name in inside)
    assert {"dataflow", "tests"} <= set(packages.names)


def test_the_same_files_make_the_same_archive() -> None:
    first, second = pack(), pack()
    assert first.digest == second.digest and first.archive == second.archive


def test_packages_that_cannot_go_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotAsGuest, match="'nowhere_to_be_found', which cannot be imported here"):
        pack(["nowhere_to_be_found"])
    with pytest.raises(NotAsGuest, match=r"packages or modules, such as 'helpers', not '\.\./x'"):
        pack(["../x"])
    monkeypatch.setitem(sys.modules, "made_here", types.ModuleType("made_here"))
    with pytest.raises(NotAsGuest, match="made_here cannot be sent to the executors: it has no file"):
        pack(["made_here"])
    (tmp_path / "heavy_one.py").touch()
    os.truncate(tmp_path / "heavy_one.py", MOST + 1)
    heavy = types.ModuleType("heavy_one")
    heavy.__file__ = str(tmp_path / "heavy_one.py")
    monkeypatch.setitem(sys.modules, "heavy_one", heavy)
    with pytest.raises(NotAsGuest, match=r"at most 64 MB may go along; the largest file is .*heavy_one\.py"):
        pack()


def test_packages_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/here,{tmp_path}/there")
    packages = pack()
    folder = unpack(packages.archive, packages.digest)
    Path(folder, "mark").touch()
    assert unpack(packages.archive, packages.digest) == folder and Path(folder, "mark").exists()
    assert os.listdir(tmp_path / "here") == [Path(folder).name]
    code = "import sys; sys.path.insert(0, sys.argv[1]); import dataflow; print(dataflow.__file__)"
    found = subprocess.run([sys.executable, "-P", "-c", code, folder], capture_output=True, text=True, check=True)
    assert found.stdout.startswith(folder)


# Tasks


def test_ports_in_a_row_are_held() -> None:
    first, held = hold_ports("127.0.0.1", 20_000, 32_000)
    try:
        for port in (first, first + 1):
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
        with pytest.raises(OSError, match=f"no 2 ports in a row are free on 127.0.0.1 between {first} and {first + 2}"):
            hold_ports("127.0.0.1", first, first + 2)
    finally:
        for each in held:
            each.close()


def test_a_python_without_the_engine_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dataflow").mkdir()
    (tmp_path / "dataflow" / "__init__.py").write_text("import nothing_like_numpy\n")
    outcome, died = run_guest(str(tmp_path), b"", b"", again=3)
    assert outcome is None and died is not None
    assert "exit status 1" in died and "cannot load the engine: No module named 'nothing_like_numpy'" in died
    assert "nothing_like_numpy" in capfd.readouterr().err  # the executor's log


def test_a_guest_that_is_killed_is_started_again_so_often(tmp_path: Path) -> None:
    (tmp_path / "dataflow" / "spark").mkdir(parents=True)
    for name in ("__init__.py", "spark/__init__.py"):
        (tmp_path / "dataflow" / name).touch()
    guest = f"""
import os, signal
def serve(parent):
    lives = len(os.listdir({str(tmp_path / "lives")!r}))
    open({str(tmp_path / "lives")!r} + f"/{{lives}}", "w").close()
    if lives < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    print(lives, end="")
"""
    (tmp_path / "dataflow" / "spark" / "guest.py").write_text(guest)
    (tmp_path / "lives").mkdir()
    assert run_guest(str(tmp_path), b"", b"", again=2) == (b"2", None)
    for left in (tmp_path / "lives").iterdir():
        left.unlink()
    outcome, died = run_guest(str(tmp_path), b"", b"", again=1)
    assert outcome is None and died is not None and "ended with signal 9" in died


# Orders and outcomes


async def double(worker: int, by: int) -> int:
    return worker * by


def test_an_order_arrives_as_it_was_sent() -> None:
    recovery = Recovery("/somewhere", every=3.0, drop=("a",))
    settings = Settings(True, 5, True, 1.0, 2.0, None, terminal=False)
    order = GuestOrder(SECRET, ("127.0.0.1", 7), ["a", "b"], pack_main(double, (3,)), settings, recovery, 9.0)
    again = GuestOrder.decode(order.encode())
    assert again == order
    main = open_main(again.parcel)
    assert trio.run(main, 7) == 21
    assert ShippedMain(again.parcel).__reduce__() == (open_main, (again.parcel,))


def test_what_cannot_travel_is_named() -> None:
    lock = socket.socket()

    async def main(worker: int) -> object:
        return lock

    with lock, pytest.raises(CannotTravel, match="its variable 'lock'"):
        pack_main(main, ())


def failed(error: BaseException) -> Handed:
    return Handed(error=error)


def test_the_first_cause_is_raised() -> None:
    elsewhere, raised = ElsewhereFailed("host 1 is gone", "end"), ValueError("oh no")
    both = {0: 1, 1: 2}
    assert judge({0: Handed(both), 1: Handed(both), 2: Handed({2: 7})}, {}) == [1, 2, 7]
    with pytest.raises(ValueError, match="oh no"):
        judge({0: failed(elsewhere), 1: failed(Terminated("told")), 2: failed(raised)}, {3: "killed"})
    with pytest.raises(WorkerFailed, match="the guest with worker 3 did not hand anything back: killed"):
        judge({0: failed(elsewhere), 1: Handed(both)}, {3: "killed"})
    with pytest.raises(ElsewhereFailed, match="host 1 is gone"):
        judge({0: failed(Terminated("told")), 1: failed(elsewhere)}, {})
    with pytest.raises(Terminated):
        judge({0: failed(Terminated("told")), 1: Handed(both)}, {})
    with pytest.raises(ExecutorLost, match="gone"):  # whoever has lost it does not know why
        judge({0: failed(Unaccounted("worker 2 cannot be reached", 2))}, {}, [WorkerFailed("x"), ExecutorLost("gone")])


def test_outcomes_travel() -> None:
    try:
        raise ValueError("oh no", 3)
    except ValueError as error:
        sent = encode_handed(Handed(error=error, unsent={"out": b"last words\n"}))
    handed = decode_handed(4, sent)
    assert isinstance(handed.error, ValueError) and handed.error.args == ("oh no", 3)
    assert handed.error.__notes__ == ["on worker 4"] and "test_parts.py" in str(handed.error.__cause__)
    assert handed.unsent == {"out": b"last words\n"}
    assert decode_handed(0, encode_handed(Handed({0: None, 3: {"a": 1}}))).results == {0: None, 3: {"a": 1}}
    assert isinstance(decode_handed(2, encode_handed(failed(KeyboardInterrupt()))).error, Terminated)


def test_what_spark_says_is_put_in_words_about_workers() -> None:
    lost = explain(
        "Job aborted due to stage failure: Could not recover from a failed barrier ResultStage. Most recent failure "
        "reason: Stage failed because barrier task ResultTask(0, 1) finished unsuccessfully.\nExecutorLostFailure "
        "(executor 1 exited caused by one of the tasks) Reason: Command exited with code 137\n\tat org.apache.X",
        range(2),
    )
    assert isinstance(lost, ExecutorLost) and lost.worker == 1
    assert str(lost) == "the executor with worker 1 is gone (Command exited with code 137)"
    assert isinstance(explain("[SPARK-24819]: Barrier execution mode does not allow", range(2)), NotAsGuest)
    assert isinstance(explain("... [SPARK-24942] ...", range(2)), NotAsGuest)
    other = explain("Task 1 in stage 0.0 failed: boom\n\tat java.lang.Thread.run\nmore", range(4, 6))
    assert isinstance(other, WorkerFailed) and other.worker == 5 and str(other).endswith("boom more")


# Home

_CALL = """
import sys
from dataflow.comm.handshake import Identity
from dataflow.spark.phone import HOME_DIGEST, Phone
worker, port, secret, ending = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode(), sys.argv[4] == "end"
real = sys.stdout
phone = Phone(Identity(secret, HOME_DIGEST, worker), ("127.0.0.1", port))
print("said by", worker)
print("half a line", end="")
print("trouble of", worker, file=sys.stderr)
if ending:
    import signal
    signal.sigwait([signal.SIGTERM])
    print(" and told to end")
print(phone.hang_up(), phone.trouble, file=real)
"""


def call(worker: int, port: int, secret: bytes, ending: str = "") -> subprocess.CompletedProcess[str]:
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"  # before threads are started
    command = [sys.executable, "-c", block + _CALL, str(worker), str(port), secret.decode(), ending]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)


def printed(secrets: list[bytes], tell_end: bool = False) -> tuple[str, str, list[str]]:
    """What the driver prints when guests with these secrets call home, and what these could not send."""
    out, err = io.StringIO(), io.StringIO()
    printers = {OUT: Printer(out), ERR: Printer(err)}
    said: dict[int, str] = {}

    async def main() -> None:
        home = Home(SECRET, {0, 1}, printers)
        async with home.open("127.0.0.1") as (_, port), trio.open_nursery() as nursery:

            async def guest(worker: int, secret: bytes) -> None:
                ask = partial(call, worker, port, secret, "end" if tell_end else "")
                said[worker] = (await trio.to_thread.run_sync(ask)).stdout

            for worker, secret in enumerate(secrets):
                nursery.start_soon(guest, worker, secret)
            if tell_end:
                with trio.fail_after(60):
                    while len(home.guests) < len(secrets):
                        await trio.lowlevel.checkpoint()
                await home.end()

    trio.run(main)
    for printer in printers.values():
        printer.finish()
    return out.getvalue(), err.getvalue(), [said[worker] for worker in sorted(said)]


def test_lines_come_home() -> None:
    out, err, said = printed([SECRET, SECRET])
    assert sorted(out.splitlines()) == ["half a line", "half a line", "said by 0", "said by 1"]
    assert sorted(err.splitlines()) == ["trouble of 0", "trouble of 1"]
    assert said == ["{} \n"] * 2


def test_a_guest_is_told_to_end() -> None:
    out, _, _ = printed([SECRET], tell_end=True)
    assert out == "said by 0\nhalf a line and told to end\n"


def test_whoever_does_not_know_the_secret_prints_nothing_and_keeps_its_lines() -> None:
    out, err, said = printed([b"another secret!!"])
    assert (out, err) == ("", "")
    assert "'out': b'said by 0\\nhalf a line'" in said[0] and "does not know the secret" in said[0]


def test_strangers_are_turned_away_and_guests_let_in() -> None:
    async def main() -> None:
        home = Home(SECRET, {0, 1}, {OUT: Printer(None), ERR: Printer(None)})
        async with home.open("127.0.0.1") as (host, port):
            stranger = await trio.open_tcp_stream(host, port)
            await stranger.send_all(b"GET / HTTP/1.1\r\n\r\n" * 10)
            with contextlib.suppress(trio.BrokenResourceError):
                assert await stranger.receive_some(100) == b""
            await stranger.aclose()
            assert (await trio.to_thread.run_sync(call, 1, port, SECRET)).stdout == "{} \n"

    trio.run(main)


def test_what_guest_0_tells_and_what_it_is_told() -> None:
    told: list[object] = []
    calls: list[str] = []
    code = """
import queue, sys
from dataflow.comm.handshake import Identity
from dataflow.spark.phone import HOME_DIGEST, Phone
real, heard = sys.stdout, queue.Queue()
secret, port, number = sys.argv[1].encode(), int(sys.argv[2]), int(sys.argv[3])
phone = Phone(Identity(secret, HOME_DIGEST, number), ("127.0.0.1", port), lambda *news: heard.put(news))
phone.tell(["invite", [2, 3], "", "here", 7])
print(heard.get(timeout=30) if number == 0 else "", phone.hang_up(), file=real)
"""

    async def main() -> None:
        home = Home(SECRET, {0, 1}, {OUT: Printer(None), ERR: Printer(None)}, told.append)
        async with home.open("127.0.0.1") as (_, port), trio.open_nursery() as nursery:

            async def guest(number: int) -> None:
                command = [sys.executable, "-c", code, SECRET.decode(), str(port), str(number)]
                run = partial(subprocess.run, command, capture_output=True, text=True, check=True, timeout=60)
                calls.append((await trio.to_thread.run_sync(run)).stdout)

            for number in (0, 1):
                nursery.start_soon(guest, number)
            await home.wait_called([0, 1])
            await home.cannot(2, "no slots")

    trio.run(main)
    assert told == [["invite", [2, 3], "", "here", 7]]  # and nothing that another guest says
    assert any("(2, 'no slots') {}" in call for call in calls)
