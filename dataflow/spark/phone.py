"""How a guest tells the driver what its worker prints, while it prints it: a thread, and a connection to `home`.

Whatever is written to this process's standard streams goes into two pipes, which the thread reads. If the driver does
not read, the pipes fill up, and those who print wait (see `dataflow.launch.printer`). If it cannot be reached, or is
gone, the last lines are kept and handed back with the outcome.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

from dataflow.comm import codec
from dataflow.comm.frames import FrameDecoder, FrameEncoder
from dataflow.comm.handshake import ANSWER_SIZE, SUPERVISORS, Connector, Identity, cluster_digest
from dataflow.errors import ProtocolError

HOME = SUPERVISORS - 1  # the driver's number in handshakes: no worker's, and no supervisor's
HOME_DIGEST = cluster_digest("home")  # what guest and driver must have in common, besides the secret
OUT, ERR = b"out", b"err"  # what guests say: printed text
TELL = b"tell"  # and what worker 0 wants, or what has changed (docs/internals/guests.md)
END, CANNOT = b"end", b"cannot"  # what the driver says: that this is the end; which workers do not come, and why
KEPT = 1 << 20  # bytes of each stream that are kept if they cannot be sent
_CHUNK = 1 << 16
_PATIENCE = 10.0  # seconds to reach home


class Phone:
    """The connection with the driver, and the thread that uses it."""

    def __init__(
        self, me: Identity, home: tuple[str, int] | None, cannot: Callable[[int, str], None] = lambda _, why: None
    ) -> None:
        """`cannot` is called, in the phone's thread, when workers that were invited do not come."""
        self._cannot = cannot
        self._notes: deque[bytes] = deque()  # what is to be told
        self.unsent: dict[bytes, deque[bytes]] = {OUT: deque(), ERR: deque()}
        self.trouble = "" if home is not None else "a session of Spark Connect has its driver elsewhere"
        """Why home cannot be reached."""
        self._sock: socket.socket | None = None
        self._reading: dict[int, bytes] = {}  # the stream of each pipe, by descriptor
        if home is not None:
            try:
                self._sock, self._encoder, self._decoder = _call(me, home)
            except (OSError, ProtocolError) as error:
                self.trouble = str(error)
        sys.stdout, sys.stderr, self._bell = self._pipe(OUT), self._pipe(ERR), self._pipe(TELL)
        self._thread = threading.Thread(target=self._run, name="phone", daemon=True)
        self._thread.start()

    def _pipe(self, stream: bytes) -> TextIO:
        read_end, write_end = os.pipe()
        self._reading[read_end] = stream
        return open(write_end, "w", buffering=1, encoding="utf-8", errors="backslashreplace")

    def tell(self, what: object) -> None:
        """Tells the driver something, plain data, when it has been told what was said before."""
        self._notes.append(codec.encode(what))
        print(file=self._bell)

    def hang_up(self) -> dict[str, bytes]:
        """Sends the rest; what could not be sent, by stream."""
        for stream in (sys.stdout, sys.stderr, self._bell):
            stream.close()
        self._thread.join()
        if self._sock is not None:
            self._sock.close()
        return {stream.decode(): b"".join(kept) for stream, kept in self.unsent.items() if kept}

    def _run(self) -> None:
        poll = select.poll()
        for fd in self._reading:
            poll.register(fd, select.POLLIN)
        listening = self._sock.fileno() if self._sock is not None else None
        if listening is not None:
            poll.register(listening, select.POLLIN)
        while self._reading:
            for fd, _ in poll.poll():
                if fd == listening:
                    if not self._hear():
                        poll.unregister(fd)
                        listening = None
                elif chunk := os.read(fd, _CHUNK):
                    if self._reading[fd] != TELL:
                        self._say(self._reading[fd], chunk)
                    while self._notes:
                        self._say(TELL, self._notes.popleft())
                else:
                    poll.unregister(fd)
                    os.close(fd)
                    del self._reading[fd]
        if self._sock is not None:
            with contextlib.suppress(OSError):  # it has left before us
                self._sock.shutdown(socket.SHUT_WR)

    def _say(self, stream: bytes, chunk: bytes) -> None:
        if self._sock is not None:
            try:
                self._sock.sendall(self._encoder.encode(stream, len(chunk)) + chunk)
                return
            except OSError:
                self._give_up()
        if stream == TELL:
            return  # nobody is there to do anything about it
        kept = self.unsent[stream]
        kept.append(chunk)
        while sum(map(len, kept)) > KEPT:
            kept.popleft()

    def _hear(self) -> bool:
        """Takes in what the driver says; False if nothing more will be heard."""
        if self._sock is None:
            return False
        try:
            count = self._sock.recv_into(self._decoder.buffer())
            self._decoder.received(count)
            while (frame := self._decoder.take()) is not None:
                if frame.header == END:
                    os.kill(os.getpid(), signal.SIGTERM)  # which the supervisor in this process knows what to do with
                elif frame.header == CANNOT:
                    number, why = codec.decode(frame.body)
                    self._cannot(number, why)
        except (OSError, ProtocolError):
            count = 0
        if not count:
            self._give_up()
        return bool(count)

    def _give_up(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


def _call(me: Identity, home: tuple[str, int]) -> tuple[socket.socket, FrameEncoder, FrameDecoder]:
    sock = socket.create_connection(home, timeout=_PATIENCE)
    try:
        connector = Connector(me, HOME)
        sock.sendall(connector.greeting())
        answer = b""
        while len(answer) < ANSWER_SIZE:
            chunk = sock.recv(ANSWER_SIZE - len(answer))
            if not chunk:
                raise ConnectionResetError("the driver turned us away")
            answer += chunk
        proof, keys = connector.finish(answer)
        sock.sendall(proof)
        sock.settimeout(None)
    except BaseException:
        sock.close()
        raise
    return sock, FrameEncoder(keys.sending), FrameDecoder(keys.receiving)
