"""Asks a run something, and waits for the answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dataflow.asking.elsewhere import Elsewhere, ask_elsewhere
from dataflow.asking.folder import SOCKET, RunsFolder, check_run_name, open_folders
from dataflow.asking.messages import LONGEST_ANSWER, NoSuchRun, Question, decode_answer, encode_question
from dataflow.launch.framing import TooLong, cut_message, frame

__all__ = ["NoSuchRun", "ask_run", "list_runs"]

_CHUNK = 1 << 16


def ask_run(name: str, question: Question, timeout: float) -> object:
    """The answer of a run. NoSuchRun if there is none of that name, or it ends or is silent; Refused if it says no."""
    if isinstance(name, Elsewhere):
        return ask_elsewhere(name, question, timeout)
    check_run_name(name)
    with open_folders() as folders:
        for folder in folders:
            with _connected(folder, name, timeout) as connection:
                if connection is not None:
                    return _ask(connection, name, question, timeout)
        found = ", ".join(known for folder in folders for known in folder.names() if _is_alive(folder, known))
        places = " or ".join(str(folder.path) for folder in folders)
    where = f" in {places}" if places else ""
    raise NoSuchRun(f"there is no run called {name!r}{where}; there are: {found or 'none'}")


def list_runs() -> list[str]:
    """The names of all runs that are alive."""
    with open_folders() as folders:
        return sorted({name for folder in folders for name in folder.names() if _is_alive(folder, name)})


@contextmanager
def _connected(folder: RunsFolder, name: str, timeout: float) -> Iterator[socket.socket | None]:
    """A connection with a run; None if it is not there."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(folder.address(name + SOCKET))
        except (FileNotFoundError, ConnectionRefusedError):
            yield None
            return
        except (TimeoutError, BlockingIOError):
            raise NoSuchRun(f"{name!r} does not answer: too many ask it something at once") from None
        yield connection


def _is_alive(folder: RunsFolder, name: str) -> bool:
    """Whether somebody listens there. A run whose door is crowded is alive."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setblocking(False)
        try:
            connection.connect(folder.address(name + SOCKET))
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def _ask(connection: socket.socket, name: str, question: Question, timeout: float) -> object:
    deadline = time.monotonic() + timeout
    received = bytearray()
    try:
        connection.sendall(frame(encode_question(question)))
        while (message := cut_message(received, LONGEST_ANSWER)) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
            chunk = connection.recv(_CHUNK)
            if not chunk:
                raise NoSuchRun(f"{name!r} ended before it answered, or is asked by too many at once")
            received += chunk
    except TimeoutError:
        raise NoSuchRun(f"{name!r} did not answer within {timeout:g} seconds") from None
    except (ConnectionError, BrokenPipeError):
        raise NoSuchRun(f"{name!r} ended before it answered, or is asked by too many at once") from None
    except TooLong as error:
        raise NoSuchRun(f"what {name!r} answered is too long: {error}") from None
    try:
        return decode_answer(message)
    except ValueError as error:
        raise NoSuchRun(f"what {name!r} answered cannot be read: {error}") from None
