"""What a worker's process tells its supervisor: its result, or what went wrong, in a form that can be raised again.

Nothing is pickled. An exception travels as the name of its class, its arguments and notes (plain data) and the text
of its traceback. The supervisor raises an exception of that class if it knows it, and `WorkerFailed` with the text
otherwise.
"""

from __future__ import annotations

import builtins
import sys
import traceback
from contextlib import suppress
from typing import NamedTuple

from dataflow.comm import codec
from dataflow.comm.codec import require_list, require_mapping, require_text
from dataflow.errors import Terminated, WorkerFailed
from dataflow.launch.questions import Answered
from dataflow.launch.verdict import Event, Failed, Idle, Lost, Recruits, Returned
from dataflow.text import show


class RemoteTraceback(Exception):
    """The traceback of another process, as the cause of the exception that is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


def encode_result(worker: int, result: object, left: bool = False) -> bytes:
    """A worker's result; TypeError if it is not plain data. `left`: it has left the others, who go on."""
    try:
        return codec.encode(["result", result, left])
    except TypeError as error:
        raise TypeError(f"what main returned on worker {worker} cannot be brought to the caller: {error}") from None


def encode_failure(error: BaseException, unbuilt: bool = False, text: str | None = None) -> bytes:
    """An exception. `unbuilt`: it was raised before a dataflow had been built. `text`: its traceback, if that is
    another than here: where it was raised first."""
    kind = type(error)
    message, text = _readable(_message(error)), _readable(text or "".join(traceback.format_exception(error)))
    notes = [_readable(str(note)) for note in getattr(error, "__notes__", [])]
    report = ["unbuilt" if unbuilt else "failure", kind.__module__, kind.__qualname__, message, notes, text]
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


def encode_idle(life: int) -> bytes:
    """The worker has gone back, and is ready for a life."""
    return codec.encode(["idle", life])


def encode_terminated() -> bytes:
    """The worker was told to end, and does so (SIGTERM)."""
    return codec.encode(["terminated"])


def encode_answered(number: int, answer: bytes) -> bytes:
    """The answer to a question of that number."""
    return codec.encode(["answer", number, answer])


def decode_report(worker: int, data: bytes) -> Event | Answered:
    """What a worker reports; ValueError if it is none of the seven."""
    report: object = codec.decode(data)
    if type(report) is list and report:
        kind, *content = report
        if kind == "result" and len(content) == 2 and type(content[1]) is bool:
            return Returned(worker, content[0], content[1])
        if kind == "terminated" and not content:
            return Failed(worker, Terminated(f"worker {worker} received SIGTERM"))
        if kind == "lost" and len(content) == 1 and type(content[0]) is int:
            return Lost(worker, content[0])
        if kind == "idle" and len(content) == 1 and type(content[0]) is int:
            return Idle(worker, content[0])
        if kind == "more" and len(content) == 3:
            return Recruits(worker, require_text(content[0]), tuple(content[1]), content[2])
        if kind == "answer" and len(content) == 2 and type(content[0]) is int and type(content[1]) is bytes:
            return Answered(content[0], content[1])
        if kind in ("failure", "unbuilt"):
            with suppress(ValueError):  # it has another shape
                return Failed(worker, decode_failure(worker, content), kind == "unbuilt")
    raise ValueError(f"{show(report)} is not what a worker reports")


class _Failure(NamedTuple):
    """An exception as it travels."""

    module: str  # of its class
    name: str
    message: str
    notes: list[str]
    text: str  # of its traceback
    arguments: list[object] | None  # None: these, or its attributes, cannot travel
    attributes: dict[str, object]


def _failure(content: list[object]) -> _Failure:
    module, name, message, notes, text, arguments, attributes = require_list(content, 7)
    return _Failure(
        require_text(module),
        require_text(name),
        require_text(message),
        [require_text(note) for note in require_list(notes)],
        require_text(text),
        None if arguments is None else require_list(arguments),
        {} if arguments is None else {require_text(key): value for key, value in require_mapping(attributes).items()},
    )


def decode_failure(worker: int | None, content: list[object]) -> BaseException:
    """The exception that a worker (None: the process that starts them) reported, with its traceback as its cause.

    ValueError if it is none.
    """
    failure = _failure(content)
    who = "the process that starts workers" if worker is None else f"worker {worker}"
    error = _rebuild(failure)
    if error is None:
        error = WorkerFailed(f"{who} raised {failure.name}: {failure.message}", worker)
    for note in failure.notes:
        error.add_note(note)
    if worker is None:
        error.add_note(f"in {who}, where main and what it uses are brought to")
    elif not any(who in note for note in failure.notes):
        error.add_note(f"on {who}")
    error.__cause__ = RemoteTraceback(failure.text)
    return error


def _rebuild(failure: _Failure) -> BaseException | None:
    """An exception of that class with those arguments, if the class is known here.

    The constructor of a program's class is not called. What is no Exception (an exit, an interrupt) ended the worker,
    and must not end the caller in the same way.
    """
    module, arguments = failure.module, failure.arguments
    if arguments is None:
        return None
    kind: object = builtins if module == "builtins" else sys.modules.get(module)
    for part in failure.name.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return None
    try:
        error = kind(*arguments) if module == "builtins" else kind.__new__(kind, *arguments)
    except Exception:
        return None  # it wants to be made in another way: the caller raises WorkerFailed with its text
    error.args = error.args or tuple(arguments)
    vars(error).update({key: value for key, value in failure.attributes.items() if key != "__notes__"})
    return error
