"""What a worker's process tells its supervisor: its result, or what went wrong, in a form that can be raised again.

Nothing is pickled. An exception travels as the name of its class, its arguments and notes (plain data) and the text
of its traceback. The supervisor raises an exception of that class if it knows it, and `WorkerFailed` with the text
otherwise.
"""

from __future__ import annotations

import builtins
import sys
import traceback
from typing import Any

from dataflow import codec
from dataflow.errors import WorkerFailed


class RemoteTraceback(Exception):
    """The traceback of another process, as the cause of the exception that is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


def encode_result(worker: int, result: Any) -> bytes:
    """A worker's result; TypeError if it is not plain data."""
    try:
        return codec.encode(["result", result])
    except TypeError as error:
        raise TypeError(f"what main returned on worker {worker} cannot be brought to the caller: {error}") from None


def encode_failure(error: BaseException) -> bytes:
    """An exception."""
    kind = type(error)
    text = "".join(traceback.format_exception(error))
    report = ["failure", kind.__module__, kind.__qualname__, str(error), list(getattr(error, "__notes__", [])), text]
    try:
        return codec.encode([*report, list(error.args), dict(vars(error)) | {"__notes__": None}])
    except TypeError:
        return codec.encode([*report, None, None])


def encode_lost(peer: int) -> bytes:
    """The connection to a peer has ended: the supervisor will know why."""
    return codec.encode(["lost", peer])


def decode_failure(worker: int, report: list[Any]) -> BaseException:
    """The exception that a worker reported, with the worker's traceback as its cause."""
    module, name, message, notes, text, arguments, attributes = report[1:]
    error = _rebuild(module, name, arguments, attributes)
    if error is None:
        error = WorkerFailed(f"worker {worker} raised {name}: {message}", worker)
    for note in notes:
        error.add_note(note)
    if not any(f"worker {worker}" in note for note in notes):
        error.add_note(f"on worker {worker}")
    error.__cause__ = RemoteTraceback(text)
    return error


def _rebuild(module: str, name: str, arguments: Any, attributes: Any) -> BaseException | None:
    """An exception of that class with those arguments, if the class is known here. Its constructor is not called."""
    if arguments is None:
        return None
    kind: Any = builtins if module == "builtins" else sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        return None
    error: BaseException = kind.__new__(kind, *arguments)
    error.args = tuple(arguments)
    vars(error).update({key: value for key, value in attributes.items() if key != "__notes__"})
    return error
