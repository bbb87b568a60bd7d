"""A main and what it uses, on their way to the process that forks workers.

They are pickled (cloudpickle: functions of a script, a notebook or another function travel by value) into memory that
has no name, and whose descriptor that process inherits. Nothing here listens, and nobody else can write there: this is
the one place where anything is unpickled.

- What is found in a module by its name travels as that name: the module is imported on the other side.
- What is defined in `__main__` travels by value, and lives in `__main__` again: so records of its classes are found.
- A function within a function of an importable module uses that module's own variables there, as it does here.
- Large arrays are copied once, whatever the number of workers: all of them map the same memory, and whoever writes to
  it gets a page of their own.
"""

from __future__ import annotations

import importlib
import io
import mmap
import os
import pickle
import struct
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeAlias

import cloudpickle

_HEAD = struct.Struct("<QQ")  # where the table of buffers begins, and how many there are
_ENTRY = struct.Struct("<QQ")  # where a buffer begins, and its size
_LARGE = 1 << 16  # bytes of a buffer that is worth a place of its own
_MOST = 1 << 30  # bytes that are written at a time: the system takes no more than two of these


@contextmanager
def packed(content: object) -> Iterator[int]:
    """The descriptor of a file without a name that holds this; raises what keeps it from being pickled."""
    fd = os.memfd_create("dataflow") if sys.platform == "linux" else _nameless()
    try:
        with open(fd, "wb", closefd=False) as file:
            _write(file, content)
        yield fd
    finally:
        os.close(fd)


def _nameless() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _write(file: BinaryIO, content: object) -> None:
    buffers: list[memoryview] = []

    def keep_apart(buffer: pickle.PickleBuffer) -> bool:
        """Called for each buffer; whether it stays in the stream of the others."""
        raw = buffer.raw()
        if raw.nbytes < _LARGE:
            return True
        buffers.append(raw)
        return False

    file.write(bytes(_HEAD.size))
    pickler = _Pickler(file, buffer_callback=keep_apart)
    pickler.dump(content)
    pickler.dump(pickler.classes_of_main())  # after the rest: only then it is known which these are
    table, at = file.tell(), file.tell() + _ENTRY.size * len(buffers)
    for raw in buffers:
        at += -at % mmap.PAGESIZE
        file.write(_ENTRY.pack(at, raw.nbytes))
        at += raw.nbytes
    for raw in buffers:
        file.write(bytes(-file.tell() % mmap.PAGESIZE))
        for start in range(0, raw.nbytes, _MOST):
            file.write(raw[start : start + _MOST])
    file.seek(0)
    file.write(_HEAD.pack(table, len(buffers)))


def unpack(fd: int) -> Any:
    """What was packed: a user's main, what it takes and what it uses.

    Closes the descriptor; large buffers stay mapped, private to whoever writes to them.
    """
    flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
    file = mmap.mmap(fd, os.fstat(fd).st_size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    os.close(fd)
    memory = memoryview(file)
    table, count = _HEAD.unpack_from(memory)
    entries = _ENTRY.iter_unpack(memory[table : table + count * _ENTRY.size])
    buffers = [memory[at : at + length] for at, length in entries]
    file.seek(_HEAD.size)
    # Written by the process that has started us, into memory that nobody else has a descriptor of.
    unpickler = pickle.Unpickler(file, buffers=buffers)  # noqa: S301
    content = unpickler.load()
    vars(sys.modules["__main__"]).update(unpickler.load())
    return content


def attempt(content: object) -> None:
    """Raises what would keep something from being packed."""
    _Pickler(_Nowhere(), buffer_callback=lambda _: False).dump(content)


class _Nowhere:
    """Takes all that is written to it."""

    def write(self, data: bytes, /) -> int:
        """Forgets it."""
        return len(data)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """cloudpickle's, but for where functions find their variables, and for what should not travel."""

    def __init__(
        self, file: BinaryIO | _Nowhere, buffer_callback: Callable[[pickle.PickleBuffer], bool] | None = None
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffer_callback)
        self._main = vars(sys.modules["__main__"])
        self._classes: set[str] = set()  # the names in `__main__` of classes that were pickled
        self.globals_ref[id(self._main)] = _Namespace("__main__", _told_of_main(self._main))

    def classes_of_main(self) -> dict[str, object]:
        """Classes of `__main__` by their names there, so that records of theirs are found where they arrive."""
        return {name: self._main[name] for name in sorted(self._classes) if isinstance(self._main.get(name), type)}

    def reducer_override(self, obj: object) -> object:
        if type(obj) is _Namespace:
            return namespace, (obj.module, dict(obj))
        if isinstance(obj, io.TextIOWrapper):
            return _reduce_stream(obj)
        if isinstance(obj, type) and obj.__module__ == "__main__":
            self._classes.add(obj.__qualname__.partition(".")[0])
        elif not isinstance(obj, type | types.FunctionType) and (name := _name_of(obj)) is not None:
            return name  # a compiled function of a module, for instance
        reduced = super().reducer_override(obj)
        if isinstance(reduced, tuple) and len(reduced) == 6:  # by value: with a state, and what sets it
            if isinstance(obj, types.FunctionType):
                return _in_its_module(obj, reduced)
            if isinstance(obj, type):
                return _with_its_name(obj, reduced)
        return reduced


_State: TypeAlias = tuple[dict[str, object], dict[str, object]]  # attributes, and what is in slots
Reduced: TypeAlias = tuple[Callable[..., object], tuple[object, ...], _State, object, object, object]
"""How cloudpickle makes a function or a class again that travels by value (see `pickle` on reducers)."""


class _Namespace(dict[str, object]):
    """Stands for the variables of a module."""

    def __init__(self, module: str, told: Mapping[str, object]) -> None:
        super().__init__(told)
        self.module = module


def namespace(module: str, told: dict[str, object]) -> dict[str, object]:
    """The variables of a module on the other side, and these besides."""
    variables = vars(importlib.import_module(module))
    variables.update(told)
    return variables


def _told_of_main(main: Mapping[str, object]) -> dict[str, object]:
    return {name: main[name] for name in ("__name__", "__package__", "__file__", "__doc__") if name in main}


def _in_its_module(function: types.FunctionType, reduced: Reduced) -> Reduced:
    """What makes a function that travels by value: with its module's own variables, if that can be imported.

    cloudpickle would give it copies, of those that it names: what one function sets another would not see, and a
    module's lock could not travel.
    """
    module = sys.modules.get(function.__module__ or "")
    if module is None or function.__module__ == "__main__" or vars(module) is not function.__globals__:
        return reduced
    if not importable(module):
        return reduced
    make, (code, _, *rest), (attributes, slots), items, pairs, setter = reduced
    own = _Namespace(function.__module__, {})
    return make, (code, own, *rest), (attributes, {**slots, "__globals__": {}}), items, pairs, setter


def _with_its_name(kind: type, reduced: Reduced) -> Reduced:
    """What makes a class that travels by value: with the name of where it was defined, which cloudpickle forgets.

    Records of a class within a class are found by that name, and those of a class within a function are refused by it.
    """
    make, arguments, (attributes, slots), items, pairs, setter = reduced
    return make, arguments, ({**attributes, "__qualname__": kind.__qualname__}, slots), items, pairs, setter


def importable(module: types.ModuleType) -> bool:
    """Whether another process can import a module: it came out of a file, and is none that travels by value."""
    return (
        getattr(module, "__spec__", None) is not None
        and module.__name__ in sys.modules
        and module.__name__ not in cloudpickle.list_registry_pickle_by_value()
    )


def _name_of(obj: object) -> str | None:
    """The name by which an object that is no function but wraps one is found in an importable module, if it is."""
    told: Mapping[str, object] = getattr(obj, "__dict__", {})
    name, place = told.get("__qualname__"), told.get("__module__")
    if not isinstance(name, str) or not isinstance(place, str) or place == "__main__":
        return None
    module = sys.modules.get(place)
    found = module is not None and importable(module) and getattr(module, name, None) is obj
    return name if found else None


def _reduce_stream(stream: io.TextIOWrapper) -> tuple[Callable[..., object], tuple[object, ...]]:
    """A standard stream is that of the other process. cloudpickle would read any other file to its end, and copy it."""
    for name in ("stdin", "stdout", "stderr"):
        if stream in (getattr(sys, name), getattr(sys, f"__{name}__")):
            return getattr, (sys, name)
    raise TypeError("cannot pickle an open file")
