"""What main uses arrives with it: by name, by value, or in memory that all workers share; or is refused by name."""

from __future__ import annotations

import dataclasses
import functools
import os
import socket
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dataflow
from dataflow.errors import CannotTravel
from dataflow.launch.parcel import packed, unpack
from tests.engine.harness import failsafe, notes
from tests.launch.arena import Arena

TALLY = [0]
LOCK = threading.Lock()


def count() -> int:
    """Counts its calls in a variable of this module."""
    with LOCK:
        TALLY[0] += 1
        return TALLY[0]


def there_and_back(content: object) -> Any:
    """What comes out of a parcel."""
    with packed(content) as fd:
        return unpack(os.dup(fd))


def test_functions_in_functions_use_the_variables_of_their_module() -> None:
    # cloudpickle alone would give main a copy of TALLY, and could not copy LOCK.
    async def main(worker: dataflow.Worker) -> list[Any]:
        count()
        with LOCK:
            TALLY[0] += 10
        return [count(), TALLY[0], sys.modules[__name__].TALLY is TALLY]  # type: ignore[attr-defined]

    with failsafe(30):
        assert dataflow.execute(main, workers=2) == [[12, 12, True]] * 2
    assert TALLY == [0]


def test_what_a_script_defines(arena: Arena) -> None:
    program = arena.script(
        """
        import dataclasses, enum, typing

        class Colour(enum.Enum):
            RED = 1
            BLUE = 2

        @dataclasses.dataclass(frozen=True, slots=True)
        class Bid:
            price: int
            colour: Colour

        class Pair(typing.NamedTuple):
            bid: Bid
            text: str

        class Outer:
            @dataclasses.dataclass
            class Inner:
                pair: Pair

        class Broken(Exception):
            def __init__(self, bid):
                super().__init__(f"broken {bid.price}")
                self.bid = bid

        UNUSED = open(__file__)  # what main does not use stays here
        calls = 0

        def made(n):
            global calls
            calls += 1
            return Outer.Inner(Pair(Bid(n, Colour(n % 2 + 1)), "x" * n))

        async def main(worker, fail):
            seen = []
            with worker.dataflow() as scope:
                handle, stream = scope.input()
                moved = stream.map(made).exchange(lambda r: r.pair.bid.price)
                probe = moved.inspect(lambda _, r: seen.append(r)).probe()
            handle.send([worker.index + 1])
            handle.close()
            while not probe.done:
                await worker.step()
            if fail and worker.index == 1:
                raise Broken(seen[0].pair.bid)
            assert typing.get_type_hints(Pair)["bid"] is Bid and calls == 1
            assert all(isinstance(record, Outer.Inner) for record in seen)
            return seen

        results = dataflow.execute(main, False, workers=2)
        assert results == [[Outer.Inner(Pair(Bid(2, Colour.RED), "xx"))], [Outer.Inner(Pair(Bid(1, Colour.BLUE), "x"))]]
        assert type(results[0][0]) is Outer.Inner and results[0][0].pair.bid.colour is Colour.RED and calls == 0
        try:
            dataflow.execute(main, True, workers=2)
        except Broken as error:
            assert error.bid == Bid(1, Colour.BLUE)
            print(error)
        """
    )
    ended = program.end()
    assert (ended.status, ended.out, ended.err) == (0, "broken 1\n", ""), ended.err


def test_a_class_within_a_function_is_refused_as_ever() -> None:
    @dataclasses.dataclass
    class Local:
        x: int

    async def main(worker: dataflow.Worker) -> object:
        return Local(1)

    with failsafe(30), pytest.raises(TypeError, match="Local is defined inside a function"):
        dataflow.execute(main, workers=2)


# ------------------------------------------------------------------------------------------------------- large arrays


def _memory(field: str) -> int:
    """Kilobytes of the parcels that this process has mapped. "Anonymous" pages are those that were copied when written
    to. "Private" ones would be those that nobody else has looked at so far: that depends on who was faster."""
    total, mine = 0, False
    with open("/proc/self/smaps") as maps:
        for line in maps:
            word = line.split()[0]
            if not word.endswith(":"):
                mine = "memfd:dataflow" in line
            elif mine and word == f"{field}:":
                total += int(line.split()[1])
    return total


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system")
def test_a_large_array_is_there_once_and_everybody_s_own() -> None:
    large = np.arange(4 << 20)  # 32 MiB
    views = {"all": large, "again": large, "fixed": np.arange(1 << 16)}
    views["fixed"].flags.writeable = False

    async def main(worker: dataflow.Worker) -> list[Any]:
        total = int(large.sum())
        assert views["all"] is large and views["again"] is large and not views["fixed"].flags.writeable
        size, copied = _memory("Size"), _memory("Anonymous")
        large[0] = worker.index + 1
        after, first = _memory("Anonymous"), int(large[0])
        large[:] = 0
        return [total, first, size, copied, after, _memory("Anonymous")]

    with failsafe(30):
        results = dataflow.execute(main, workers=2)
    for index, (total, first, size, copied, after, everything) in enumerate(results):
        assert (total, first) == (int(large.sum()), index + 1)
        assert 32 << 10 <= size < 34 << 10  # the array once, and not much else
        assert copied < 512 and after < 1024  # only what is written to is copied
        assert 32 << 10 <= everything < 34 << 10
    assert large[0] == 0 and large[1] == 1


@pytest.mark.parametrize(
    "array",
    [
        np.arange(1 << 17)[::2],
        np.asfortranarray(np.arange(1 << 16).reshape(256, 256)),
        np.zeros((0, 5)),
        np.array([{"any": 1}, None]),
        np.zeros(1 << 15, [("a", "i8"), ("b", "f4")]),
        np.broadcast_to(np.arange(3), (100_000, 3)),
    ],
    ids=["strided", "Fortran", "empty", "objects", "records", "broadcast"],
)
def test_arrays_of_all_kinds(array: Any) -> None:
    (same,) = there_and_back([array])
    assert same.dtype == array.dtype
    assert np.array_equal(same, array)


def test_much_that_is_not_an_array() -> None:
    content = {"bytes": b"x" * (3 << 20), "text": "ä" * (1 << 20), "list": list(range(100_000))}
    same, array = there_and_back((content, np.ones(1 << 20)))
    assert same == content
    assert np.array_equal(array, np.ones(1 << 20))


def test_names_that_lead_to_what_is_no_function() -> None:
    # A compiled function of a module is that module's own on the other side: with what is cached for it.
    from nexmark.events import kernels

    async def main(worker: dataflow.Worker, functions: dict[str, object]) -> bool:
        return all(getattr(kernels, name) is function for name, function in functions.items())

    compiled = {name: value for name, value in vars(kernels).items() if hasattr(value, "py_func")}
    assert compiled
    with failsafe(30):
        assert dataflow.execute(main, compiled, workers=2) == [True, True]


def test_standard_streams_are_those_of_the_worker() -> None:
    assert there_and_back([sys.stdout, sys.__stderr__]) == [sys.stdout, sys.stderr]


# --------------------------------------------------------------------------------------------------- what cannot travel


class Keeper:
    """Keeps something."""

    def __init__(self, kept: object) -> None:
        self.kept = kept

    async def main(self, worker: dataflow.Worker) -> object:
        return self.kept


def _in_a_variable(value: object) -> Callable[..., Any]:
    async def main(worker: dataflow.Worker) -> object:
        return value

    return main


def _in_a_function(value: object) -> Callable[..., Any]:
    def helper() -> object:
        return value

    async def main(worker: dataflow.Worker) -> object:
        return helper()

    return main


def _in_a_default(value: object) -> Callable[..., Any]:
    async def main(worker: dataflow.Worker, option: object = value) -> object:
        return option

    return main


WAYS: dict[str, tuple[Callable[[object], Callable[..., Any]], str]] = {
    "variable": (_in_a_variable, "main, its variable 'value'"),
    "function": (_in_a_function, "main, its variable 'helper', its variable 'value'"),
    "default": (_in_a_default, "main, its default 1"),
    "object": (lambda value: Keeper(value).main, "main, the object that it belongs to, its attribute 'kept'"),
    "partial": (lambda value: functools.partial(_in_a_variable(1), value), "main, its argument 1"),
    "list": (lambda value: _in_a_variable({"k": [1, value]}), "main, its variable 'value', the value of 'k', item 1"),
}


@pytest.mark.parametrize(("put", "path"), WAYS.values(), ids=WAYS)
def test_what_cannot_travel_is_named(put: Callable[[object], Callable[..., Any]], path: str) -> None:
    with pytest.raises(CannotTravel) as refused:
        dataflow.execute(put(threading.Lock()), workers=2)
    assert str(refused.value) == (
        f"{path} cannot be brought to the workers, which are processes of their own: it is a _thread.lock (cannot "
        "pickle '_thread.lock' object). Make it inside main, from what can be copied (a path, an address), or keep the "
        "workers in this process with in_process=True"
    )
    assert isinstance(refused.value, TypeError | dataflow.DataflowError)


def test_kinds_that_cannot_travel() -> None:
    async def main(worker: dataflow.Worker, value: object) -> None: ...

    with socket.socket() as sock, open(__file__) as text, open(__file__, "rb") as data:
        for value in (sock, text, data, (n for n in [1]), sys._getframe()):
            with pytest.raises(CannotTravel, match=rf"argument 1 of main cannot .*\.{type(value).__qualname__} \("):
                dataflow.execute(main, value, workers=2)


def test_a_global_variable_of_a_script_that_cannot_travel(arena: Arena) -> None:
    program = arena.script(
        """
        import socket
        connection = socket.socket()

        async def main(worker):
            [connection.fileno() for _ in range(3)]

        dataflow.execute(main, workers=2)
        """
    )
    assert "CannotTravel: main, its global variable 'connection' cannot" in program.end().err


def test_a_module_that_cannot_be_imported_over_there() -> None:
    module = types.ModuleType("made_up_here")
    exec("async def main(worker): pass", vars(module))
    sys.modules["made_up_here"] = module
    try:
        with failsafe(30), pytest.raises(ModuleNotFoundError, match="made_up_here") as caught:
            dataflow.execute(module.main, workers=2)
    finally:
        del sys.modules["made_up_here"]
    assert "in the process that starts workers" in notes(caught.value)


def test_what_fails_when_it_is_unpacked_is_raised_here() -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return int, ("not a number",)

    async def main(worker: dataflow.Worker, bomb: object) -> None: ...

    with failsafe(30), pytest.raises(ValueError, match="not a number") as caught:
        dataflow.execute(main, Bomb(), workers=2)
    assert "in the process that starts workers" in notes(caught.value)
