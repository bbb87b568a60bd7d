"""Asks a run on another host, at the address of its `--control`, with its secret. `network` is the other side."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from dataflow.asking.messages import NoSuchRun, Question, decode_answer, encode_question
from dataflow.asking.network import ANSWERS, CONTROL, QUESTIONS
from dataflow.comm.frames import FrameDecoder, FrameEncoder, FrameError
from dataflow.comm.handshake import ANSWER_SIZE, ASKER, RUN, Connector, Identity
from dataflow.errors import HandshakeError
from dataflow.launch.hosts import Tls

_CHUNK = 1 << 16


class Elsewhere(str):
    """A run on another host, as text its address; and how one proves that one may ask it. It stands where the name of a
    run on this host could."""

    __slots__ = ("address", "secret", "tls")
    address: tuple[str, int]
    secret: bytes
    tls: Tls | None

    def __new__(cls, address: tuple[str, int], secret: bytes, tls: Tls | None = None) -> Elsewhere:
        """At that address; with certificates if the run has some."""
        host, port = address
        made = super().__new__(cls, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        made.address, made.secret, made.tls = address, secret, tls
        return made


def ask_elsewhere(run: Elsewhere, question: Question, timeout: float) -> object:
    """The answer of a run. NoSuchRun if there is none or it is silent, or has another secret; Refused if it says no."""
    deadline = time.monotonic() + timeout
    try:
        connection = socket.create_connection(run.address, timeout)
    except OSError as error:
        raise NoSuchRun(f"no run can be reached at {run}: {error.strerror or error} (see its --control)") from None
    with connection:
        try:
            with _secured(connection, run) as secured:
                message = _Line(secured, deadline).ask(run, encode_question(question))
        except TimeoutError:
            raise NoSuchRun(f"{run} did not answer within {timeout:g} seconds") from None
        except (HandshakeError, FrameError) as error:
            raise NoSuchRun(f"{run}: {error}") from None
        except OSError as error:
            raise NoSuchRun(f"{run} ended the connection ({error.strerror or error}){_HINT}") from None
    try:
        return decode_answer(message)
    except ValueError as error:
        raise NoSuchRun(f"what {run} answered cannot be read: {error}") from None


_HINT = (
    ": is that the address of --control, and not one of --hosts? A run with --cert wants --cert, --key and --ca here, "
    "too. It says more on its own side"
)


def _secured(connection: socket.socket, run: Elsewhere) -> socket.socket:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if run.tls is None:
        return connection
    return run.tls.client().wrap_socket(connection, server_hostname=run.address[0])


@dataclass(slots=True)
class _Line:
    """A connection on which nothing takes longer than until a moment."""

    connection: socket.socket
    deadline: float

    def ask(self, run: Elsewhere, question: bytes) -> bytes:
        """Proves the secret, has the run prove it, asks, and waits for the answer."""
        connector = Connector(Identity(run.secret, CONTROL, ASKER), RUN)
        self._send(connector.greeting())
        answer = b""
        while len(answer) < ANSWER_SIZE:
            answer += self._receive(ANSWER_SIZE - len(answer), f"{run} turned us away{_HINT}")
        proof, keys = connector.finish(answer)
        self._send(proof + FrameEncoder(keys.sending, QUESTIONS).encode(question))
        decoder = FrameDecoder(keys.receiving, ANSWERS)
        while (frame := decoder.take()) is None:
            decoder.feed(self._receive(_CHUNK, f"{run} ended before it answered"))
        return frame.header

    def _send(self, data: bytes) -> None:
        self.connection.settimeout(self._left())
        self.connection.sendall(data)

    def _receive(self, most: int, otherwise: str) -> bytes:
        """Some bytes. NoSuchRun with that text if there are none any more."""
        self.connection.settimeout(self._left())
        chunk = self.connection.recv(most)
        if not chunk:
            raise NoSuchRun(otherwise)
        return chunk

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
