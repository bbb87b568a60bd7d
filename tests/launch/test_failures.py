"""What workers return and raise, as the caller of `execute` sees it."""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

import dataflow
from dataflow.errors import TooManyWorkers, WorkerFailed
from dataflow.launch.report import RemoteTraceback
from tests.comm.values import ROWS, Bid, Frozen, same
from tests.engine.harness import failsafe, notes
from tests.launch.files import few_open_files

WORKERS = 3


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = _open_files()
    with failsafe(30):
        yield
    assert _open_files() == before, "connections or pipes are left"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def _open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()


@contextmanager
def raises(kind: type[BaseException], match: str | None = None, worker: int | None = None) -> Iterator[Any]:
    """Exactly that kind of exception, which names the worker at fault."""
    with pytest.raises(BaseException, match=match) as caught:
        yield caught
    assert type(caught.value) is kind, traceback.format_exception(caught.value)
    if worker is not None:
        told = f"{caught.value} {notes(caught.value)}"
        assert f"worker {worker}" in told
        others = [f"worker {other}" for other in range(WORKERS) if other != worker]
        assert not any(other in told for other in others), told


# ------------------------------------------------------------------------------------------------------------- results


def test_results_come_back_by_worker_with_their_types() -> None:
    async def main(worker: dataflow.Worker, *args: Any) -> Any:
        return worker.index, args, ROWS

    results = dataflow.execute(main, "a", 2, workers=WORKERS)
    assert all(same(result, (index, ("a", 2), ROWS)) for index, result in enumerate(results))


def test_closures_and_lambdas() -> None:
    factor, seen = 3, []

    async def main(worker: dataflow.Worker, function: Any) -> list[int]:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            moved = stream.map(lambda n: function(n) * factor).exchange(lambda n: n)
            probe = moved.inspect(lambda _, n: seen.append(n)).probe()
        handle.send([worker.index])
        handle.close()
        while not probe.done:
            await worker.step()
        return seen

    results = dataflow.execute(main, lambda n: n + 10, workers=WORKERS)
    assert sorted(n for result in results for n in result) == [30, 33, 36]
    assert seen == []  # what workers see stays with them


def test_a_large_result() -> None:
    async def main(worker: dataflow.Worker) -> bytes:
        return bytes([worker.index]) * (40 << 20)

    results = dataflow.execute(main, workers=2)
    assert [(result[0], len(result)) for result in results] == [(0, 40 << 20), (1, 40 << 20)]


def test_a_result_that_is_no_plain_data_names_itself_and_its_worker() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        return {"k": [object()]} if worker.index == 1 else None

    with raises(TypeError, match="worker 1 cannot be brought to the caller.*object", worker=1):
        dataflow.execute(main, workers=WORKERS)


def test_a_result_of_a_class_that_only_the_worker_knows_names_the_worker() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        if worker.index == 1:
            module = types.ModuleType("known_in_one_worker")
            module.Thing = dataclasses.make_dataclass("Thing", ["x"])  # type: ignore[attr-defined]
            module.Thing.__module__ = module.__name__
            sys.modules[module.__name__] = module
            return module.Thing(1)
        return None

    with raises(WorkerFailed, match="known_in_one_worker", worker=1):
        dataflow.execute(main, workers=WORKERS)


# ---------------------------------------------------------------------------------------------------------- exceptions


class Broken(Exception):
    """With a constructor of its own, and attributes."""

    def __init__(self, code: int, bid: Bid) -> None:
        super().__init__(f"broken with {code}")
        self.code = code
        self.bid = bid


class KeywordsOnly(Exception):
    """Which cannot be made from its arguments."""

    def __new__(cls, *, code: int) -> KeywordsOnly:
        return super().__new__(cls, code)

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this works")


PLACES = ("main", "before building", "operator", "source", "sink")


async def fail_at(worker: dataflow.Worker, place: str, index: int, error: Any) -> None:
    """Raises `error()` on one worker, in one place."""

    def strike(*_: Any) -> None:
        if worker.index == index:
            raise error()

    async def strike_later(*_: Any) -> None:
        await trio.sleep(0.001)
        strike()

    def numbers() -> Iterator[int]:
        yield from range(10)
        if place == "source":
            strike()

    if place == "before building":
        strike()
    with worker.dataflow() as scope:
        stream = scope.source(numbers, batch=1).exchange(lambda n: n).broadcast()
        if place == "operator":
            stream = stream.inspect(strike, name="the culprit")
        stream.sink(strike_later if place == "sink" else lambda *_: None)
    if place == "main":
        await trio.sleep(0.01)
        strike()
    await trio.sleep_forever()  # the others wait for what never comes, and must be ended


@pytest.mark.parametrize("index", range(WORKERS))
@pytest.mark.parametrize("place", PLACES)
def test_an_exception_comes_out_as_it_was_and_names_its_worker(place: str, index: int) -> None:
    with raises(Broken, match="broken with 7", worker=index) as caught:
        dataflow.execute(fail_at, place, index, lambda: Broken(7, Bid(1, 2.0)), workers=WORKERS)
    error = caught.value
    assert (error.code, error.bid) == (7, Bid(1, 2.0))
    assert isinstance(error.__cause__, RemoteTraceback)
    assert "in strike" in error.__cause__.text and "Broken: broken with 7" in error.__cause__.text
    if place == "operator":
        assert "the culprit" in notes(error)


def _unicode() -> Exception:
    try:
        b"\xff".decode()
    except UnicodeDecodeError as error:
        return error
    raise AssertionError


KEPT: dict[str, Any] = {
    "KeyError": lambda: KeyError("k"),
    "OSError": lambda: FileNotFoundError(2, "No such file", "name"),
    "UnicodeDecodeError": _unicode,
    "ImportError": lambda: ImportError("no such module", name="x"),
    "SyntaxError": lambda: SyntaxError("bad", ("file", 1, 2, "text")),
    "ZeroDivisionError": lambda: ZeroDivisionError("division"),
    "our own": lambda: dataflow.TimeError("late"),
    "plain data in args": lambda: ValueError(1, ("two", Frozen("three"))),
}


@pytest.mark.parametrize("make", KEPT.values(), ids=KEPT)
def test_exceptions_keep_type_and_message(make: Any) -> None:
    expected = make()
    with raises(type(expected), worker=1) as caught:
        dataflow.execute(fail_at, "main", 1, make, workers=2)
    assert str(caught.value) == str(expected)
    assert same(list(caught.value.args), list(expected.args))


class Unknown:
    """Makers of exceptions that cannot be raised again in the caller: it gets WorkerFailed, with the text."""

    @staticmethod
    def local() -> Exception:
        class Local(Exception):
            pass

        return Local("only here")

    @staticmethod
    def unencodable() -> Exception:
        return ValueError("only here", object())

    @staticmethod
    def keywords() -> Exception:
        return KeywordsOnly(code=5)

    @staticmethod
    def exit_0() -> BaseException:
        return SystemExit(0)

    @staticmethod
    def exit_with_text() -> BaseException:
        return SystemExit("only here")

    @staticmethod
    def keyboard() -> BaseException:
        return KeyboardInterrupt()

    @staticmethod
    def generator() -> BaseException:
        return GeneratorExit()

    @staticmethod
    def no_unicode() -> Exception:
        return ValueError("\ud800")

    @staticmethod
    def circular() -> Exception:
        args: list[Any] = ["only here"]
        args.append(args)
        return ValueError(args)


@pytest.mark.parametrize("make", [value for name, value in vars(Unknown).items() if isinstance(value, staticmethod)])
@pytest.mark.parametrize("place", ["main", "operator"])
def test_what_cannot_be_raised_again_is_a_failed_worker(make: Any, place: str) -> None:
    # An exit or an interrupt of a worker is not one of the caller: that would end silently, with status 0.
    with raises(WorkerFailed, worker=1) as caught:
        dataflow.execute(fail_at, place, 1, make, workers=2)
    assert caught.value.worker == 1
    assert type(make()).__name__ in str(caught.value)
    assert isinstance(caught.value.__cause__, RemoteTraceback)


def test_an_exception_without_a_message_is_told_all_the_same() -> None:
    with pytest.raises(Mute) as caught:
        dataflow.execute(fail_at, "main", 1, lambda: Mute(1), workers=2)
    assert "worker 1" in notes(caught.value)


def test_a_group_is_told_with_all_that_is_in_it() -> None:
    def group() -> BaseExceptionGroup[Exception]:
        return ExceptionGroup("several", [Broken(1, Bid(1, 1.0)), KeyError("k")])

    with pytest.raises(Exception) as caught:  # noqa: PT011 (the group, or what is in it)
        dataflow.execute(fail_at, "main", 1, group, workers=2)
    told = f"{caught.value} {notes(caught.value)} {caught.value.__cause__}"
    assert "on worker 1" in told and "broken with 1" in told and "KeyError: 'k'" in told


def test_several_failures_at_once_are_one() -> None:
    async def main(worker: dataflow.Worker) -> None:
        raise Broken(worker.index, Bid(1, 1.0))

    with raises(Broken) as caught:
        dataflow.execute(main, workers=WORKERS)
    assert f"worker {caught.value.code}" in notes(caught.value)


def test_a_record_that_cannot_be_sent_names_it_and_the_worker() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map(lambda n: (n, open)).exchange(lambda pair: pair[0])
        handle.send([1] if worker.index == 0 else [])
        handle.advance_to(1)
        await trio.sleep_forever()

    with raises(TypeError, match="cannot be sent to another worker.*open", worker=0):
        dataflow.execute(main, workers=2)


def test_workers_that_build_different_dataflows_are_told() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.exchange(lambda n: n) if worker.index else stream.map(lambda n: n)
        handle.send([1])
        await trio.sleep_forever()

    with pytest.raises(dataflow.DataflowError, match="worker"):
        dataflow.execute(main, workers=2)


@pytest.mark.parametrize("status", [0, 3])
def test_a_process_that_exits_on_its_own(status: int) -> None:
    async def main(worker: dataflow.Worker) -> None:
        if worker.index == 1:
            os._exit(status)
        await trio.sleep_forever()

    with raises(WorkerFailed, match=f"worker 1 ended with exit status {status}", worker=1):
        dataflow.execute(main, workers=WORKERS)


def test_a_worker_that_failed_is_not_hidden_by_one_that_could_not_be_reached() -> None:
    # The others lose their connections at the same time as the cause is reported.
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(iter(int, 1), batch=1, ahead=100).broadcast().probe()
        await trio.sleep(0.05)
        if worker.index == 2:
            os._exit(9)
        await trio.sleep_forever()

    for _ in range(5):
        with raises(WorkerFailed, match="exit status 9", worker=2):
            dataflow.execute(main, workers=WORKERS)


def test_execute_may_be_called_again_and_again() -> None:
    async def main(worker: dataflow.Worker, fail: bool) -> int:
        if fail and worker.index == 1:
            raise Broken(1, Bid(1, 1.0))
        return worker.index

    for fail in (False, True, False, True, False):
        if fail:
            with raises(Broken):
                dataflow.execute(main, True, workers=2)
        else:
            assert dataflow.execute(main, False, workers=2) == [0, 1]


def test_inside_a_loop_execute_says_what_to_do_and_that_exists() -> None:
    async def main(worker: dataflow.Worker) -> None:
        pass

    async def inside() -> None:
        dataflow.execute(main, workers=2)

    with pytest.raises(dataflow.DataflowError, match="trio loop") as caught:
        trio.run(inside)
    assert "dataflow.execute_async" not in str(caught.value) or hasattr(dataflow, "execute_async")


def test_the_finally_clauses_of_the_others_are_run(tmp_path: Any) -> None:
    async def main(worker: dataflow.Worker) -> None:
        try:
            if worker.index == 0:
                await trio.sleep(0.05)
                raise Broken(0, Bid(1, 1.0))
            await trio.sleep_forever()
        finally:
            (tmp_path / str(worker.index)).touch()

    with raises(Broken):
        dataflow.execute(main, workers=WORKERS)
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2"]


@pytest.mark.parametrize("more", [1, 3, 6, 9, 10, 13, 15])  # the parcel, the zygote, each worker
def test_more_workers_than_files_may_be_open_are_refused(more: int) -> None:
    async def main(worker: dataflow.Worker) -> None:
        raise AssertionError("none is started")

    with few_open_files(more) as limit, pytest.raises(TooManyWorkers) as refused:
        dataflow.execute(main, workers=3)
    assert str(refused.value) == (
        f"3 workers on one host need 16 more open files in this process, which may have {limit}: start fewer workers, "
        "or raise the limit first (ulimit -n)"
    )


class FullHere:
    """When it is unpacked, which is where workers are forked, no more processes can be started there."""

    def __reduce__(self) -> Any:
        return _let_forks_fail, ()


def _let_forks_fail() -> None:
    def fork() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    os.fork = fork


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_system_that_starts_no_more_processes_is_told_of(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(worker: dataflow.Worker, *args: object) -> None:
        raise AssertionError("none is started")

    def refuse(*args: object, **options: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    if where == "here":
        monkeypatch.setattr("subprocess.Popen", refuse)
    why = "Cannot allocate memory" if where == "here" else "Resource temporarily unavailable"
    says = f"the system starts no more processes ({why}): start fewer workers, or raise the limit of processes first"
    with pytest.raises(TooManyWorkers, match=re.escape(says)):
        dataflow.execute(main, *([FullHere()] if where == "there" else []), workers=3)
