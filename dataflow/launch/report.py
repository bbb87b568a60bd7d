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

from dataflow.comm import codec
from dataflow.comm.text import show
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
    message, text = _readable(_message(error)), _readable("".join(traceback.format_exception(error)))
    notes = [_readable(str(note)) for note in getattr(error, "__notes__", [])]
    report = ["failure", kind.__module__, kind.__qualname__, message, notes, text]
    try:
        arguments = list(error.__reduce__()[1])  # more than args, for an OSError
        return codec.encode([*report, arguments, dict(vars(error)) | {"__notes__": None}])
    except Exception:  # its arguments cannot travel; its name, message, notes and traceback do, so nothing is hidden
        return codec.encode([*report, None, None])


def _readable(text: str) -> str:
    """The same text if it is Unicode, and something like it otherwise."""
    return text.encode("utf-8", "backslashreplace").decode()


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:
        return f"(its message cannot be had: {type(another).__name__})"


def encode_lost(peer: int) -> bytes:
    """The connection to a peer has ended: the supervisor will know why."""
    return codec.encode(["lost", peer])


def encode_terminated() -> bytes:
    """The worker was told to end, and does so (SIGTERM)."""
    return codec.encode(["terminated"])


def decode_report(data: bytes) -> list[Any]:
    """What a worker reports, with its shape checked; ValueError if it is none of the four."""
    report = codec.decode(data)
    if type(report) is list and report:
        kind, *content = report
        if kind == "result" and len(content) == 1:
            return report
        if kind == "terminated" and not content:
            return report
        if kind == "lost" and len(content) == 1 and type(content[0]) is int:
            return report
        if kind == "failure" and len(content) == 7 and _is_failure(*content):
            return report
    raise ValueError(f"{show(report)} is not what a worker reports")


def _is_failure(module: Any, name: Any, message: Any, notes: Any, text: Any, arguments: Any, attributes: Any) -> bool:
    texts = (module, name, message, text, *(notes if type(notes) is list else [None]))
    whole = type(arguments) is list and type(attributes) is dict
    return all(type(part) is str for part in texts) and (whole or arguments is None)


def decode_failure(worker: int | None, report: list[Any]) -> BaseException:
    """The exception that a worker (None: the process that starts them) reported, with its traceback as its cause."""
    module, name, message, notes, text, arguments, attributes = report[1:]
    error = _rebuild(module, name, arguments, attributes)
    who = "the process that starts workers" if worker is None else f"worker {worker}"
    if error is None:
        error = WorkerFailed(f"{who} raised {name}: {message}", worker)
    for note in notes:
        error.add_note(note)
    if worker is None:
        error.add_note(f"in {who}, where main and what it uses are brought to")
    elif not any(who in note for note in notes):
        error.add_note(f"on {who}")
    error.__cause__ = RemoteTraceback(text)
    return error


def _rebuild(module: str, name: str, arguments: Any, attributes: Any) -> BaseException | None:
    """An exception of that class with those arguments, if the class is known here.

    The constructor of a program's class is not called. What is no Exception (an exit, an interrupt) ended the worker,
    and must not end the caller in the same way.
    """
    if arguments is None:
        return None
    kind: Any = builtins if module == "builtins" else sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return None
    try:
        error = kind(*arguments) if module == "builtins" else kind.__new__(kind, *arguments)
    except Exception:
        return None  # it wants to be made in another way: the caller raises WorkerFailed with its text
    error.args = error.args or tuple(arguments)
    vars(error).update({key: value for key, value in attributes.items() if key != "__notes__"})
    return error
