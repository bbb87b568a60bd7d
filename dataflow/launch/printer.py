"""Writing what workers print, from a thread: whoever reads it may take their time (`| less`), and nobody else waits."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import select
import threading
from typing import TextIO

import trio

_FULL = 1 << 18  # characters that wait to be written, after which nothing more is read from workers


class Printer:
    """One stream of the supervisor's, and a thread that starts when there is something to write.

    What is put is written in that order. When more than a little waits, `full` says so: then workers' output is not
    read any more, their pipes fill up, and whoever goes on printing waits. Nothing is dropped, unless writing fails:
    then `trouble` says why, and there is no point in anything more.
    """

    def __init__(self, stream: TextIO | None) -> None:
        """Without a stream (a closed standard stream is None) there is nobody to write for, as with `print`."""
        self._stream = stream
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._put = 0  # characters, by whoever prints
        self._written = 0  # characters, by the thread
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._news = trio.Event()
        self.trouble: OSError | None = None

    @property
    def full(self) -> bool:
        """Whether enough is waiting to be written."""
        return self._put - self._written > _FULL and self.trouble is None

    def put(self, text: str) -> None:
        """Leaves text to be written. Never waits."""
        if not text or self._stream is None or self._stream.closed:
            return
        if self._thread is None:
            # A daemon: if it hangs because nobody reads, and the user does not want to wait, the process can end.
            self._thread = threading.Thread(target=self._run, name="printer", daemon=True)
            self._thread.start()
        self._put += len(text)
        self._queue.put(text)

    async def room(self) -> None:
        """Waits while it is full."""
        self._token = trio.lowlevel.current_trio_token()
        while self.full:
            await self._news.wait()

    async def watch(self) -> None:
        """Raises what keeps text from being written, as soon as something does."""
        self._token = trio.lowlevel.current_trio_token()
        while self.trouble is None:
            await self._news.wait()
        raise self.trouble

    def finish(self, patience: float | None = None) -> OSError | None:
        """Waits until everything is written, and ends the thread. What kept it from being written, if anything did.

        `patience`: for so many seconds at most; whoever does not read in time misses the rest.
        """
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(patience)
            self._thread = None
        return self.trouble

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

    # In the thread

    def _run(self) -> None:
        while (text := self._queue.get()) is not None:
            if self.trouble is None:
                try:
                    assert self._stream is not None
                    _write(self._stream, text)
                except OSError as error:
                    self.trouble = error
            self._written += len(text)
            self._tell_soon()

    def _tell_soon(self) -> None:
        """Lets whoever waits look again. Nobody may be there: not yet, or no longer."""
        if self._token is not None:
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._tell, idempotent=True)


def _write(stream: TextIO, text: str) -> None:
    if type(stream) is not io.TextIOWrapper:  # somebody has put something of their own in its place
        stream.write(_readable(stream, text))
        stream.flush()
        return
    # Past its buffer, whose lock would keep the process from ending while a write hangs.
    rest = memoryview(_readable(stream, text).encode(stream.encoding))
    while rest:
        try:
            rest = rest[os.write(stream.fileno(), rest) :]
        except BlockingIOError:  # somebody shares the terminal and has made it so
            poll = select.poll()  # not select.select, which knows no descriptor above 1,023
            poll.register(stream, select.POLLOUT)
            poll.poll()


def _readable(stream: TextIO, text: str) -> str:
    """The same text, but for what the terminal cannot show."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
