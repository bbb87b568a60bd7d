"""A link: one connection to one other worker, with its frames, its queue and its end.

Messages are queued by `post` and leave with the next `flush`, all of them in one frame: progress and small data share
a frame, and the peer is woken once. If the kernel takes the frame at once, as it mostly does, no task is involved.
Otherwise the link's writing task goes on with it, and what is posted meanwhile is gathered into the next frame.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import trio

from dataflow.comm.arena import LARGE, Arena
from dataflow.comm.board import Board
from dataflow.comm.frames import QUICK_MOST, FrameDecoder, FrameEncoder, FrameError, FrameLimits, QuickFrame
from dataflow.comm.handshake import Keys
from dataflow.comm.messages import AnyMessage, BlocksReturned, Data, Goodbye
from dataflow.comm.pipes import Piece, Pipe
from dataflow.comm.rows import encode_rows
from dataflow.comm.wire import decode_messages, decode_quick, encode_messages
from dataflow.errors import PeerLost
from dataflow.run.signal import Signal

_ME = -1  # senders are not part of what is sent: whoever receives it knows from whom it is
_FEW = 1024  # rows
_FRAME = 1 << 22  # messages that weigh more than this together go in several frames


@dataclass(frozen=True, slots=True)
class SharedArenas:
    """Memory that two workers of one host share: what `mine` lends, the peer borrows, and the other way round."""

    mine: Arena
    theirs: Arena


class Link:
    """One connection to worker `peer`."""

    def __init__(
        self,
        pipe: Pipe,
        keys: Keys | None,
        peer: int,
        limits: FrameLimits | None = None,
        shared: SharedArenas | None = None,
    ) -> None:
        """`keys`: None if the pipe is a ring. `shared` is memory of this worker's and of the peer's in which bodies of
        frames may lie."""
        self.peer = peer
        self.said_goodbye = False  # by the peer
        self.gate: Board | None = None  # nothing leaves here while something waits to be said to all
        self.pipe = pipe
        self._quick = keys is None
        self._encoder = FrameEncoder(None if keys is None else keys.sending, limits)
        self._shared = shared
        self._lent: set[int] = set()  # where blocks of our memory begin that the peer refers to
        self._returned: deque[int] = deque()  # blocks of the peer's memory that nothing here refers to any more
        receiving = None if keys is None else keys.receiving
        self._decoder = FrameDecoder(receiving, limits, None if shared is None else self._borrow)
        self._queue: deque[AnyMessage] = deque()
        self._unsent: deque[Piece] = deque()
        self._frame_size = -1  # of the frame that was just encoded, if all that is unsent is that frame
        self._signal = Signal()
        self._drained = Signal()
        self._writing = False  # whether the writing task is in the middle of a frame: then nobody else may send
        self._lost = False

    # Sending

    def post(self, message: AnyMessage) -> None:
        """Queues a message for the next flush."""
        self._queue.append(message)

    def flush(self) -> None:
        """Sends what is queued, as far as that is possible without waiting."""
        if not self._lost and not self._writing and (self._queue or self._unsent):
            self._send_now()
            if self._unsent:
                self._signal.set()
            elif not self._queue:
                self._drained.set()

    async def drain(self) -> None:
        """Waits until everything that was posted has been handed to the kernel, or the connection is lost."""
        self.flush()
        while not self._lost and (self._queue or self._unsent):
            await self._drained.wait()

    def _send_now(self) -> None:
        try:
            while True:
                if not self._unsent:
                    if not self._queue or (self.gate is not None and self.gate.full):
                        return
                    self._encode_frame()
                sent = self.pipe.try_send(tuple(self._unsent))
                if not sent:
                    return
                if sent == self._frame_size:
                    self._unsent.clear()  # a whole frame at once: nearly always
                else:
                    self._forget(sent)
                self._frame_size = -1
        except OSError:
            self._lost = True  # the reading task will find out, and say so in its own way
            self._queue.clear()
            self._unsent.clear()

    def _encode_quick(self, message: AnyMessage) -> bool:
        """Encodes the next message as a frame of rows, if it is a batch of few rows at an integer time."""
        if type(message) is not Data or type(message.time) is not int:
            return False
        if not isinstance(message.batch, list) or len(message.batch) > _FEW:
            return False
        rows = encode_rows(message.batch)
        if len(rows) > QUICK_MOST:
            return False
        try:
            frame = self._encoder.encode_quick(message.dataflow, message.channel, message.time, message.size, rows)
        except struct.error:
            return False
        self._queue.popleft()
        self._unsent.append(frame)
        self._frame_size = len(frame)
        return True

    def _encode_frame(self) -> None:
        if self._quick and not self._returned and self._encode_quick(self._queue[0]):
            return
        messages: list[AnyMessage] = []
        weight = 0
        while self._queue and weight < _FRAME:
            message = self._queue.popleft()
            messages.append(message)
            weight += message.size if isinstance(message, Data) else 64
        if self._returned:  # more may come while we look
            blocks = [self._returned.popleft() for _ in range(len(self._returned))]
            messages.append(BlocksReturned(_ME, blocks))
        header, buffers = encode_messages(messages)
        body = sum(map(len, buffers))
        at = self._lend(buffers, body)
        front = self._encoder.encode(header, body, at)
        self._unsent.append(front)
        self._frame_size = len(front)
        if at is None:
            self._unsent.extend(buffers)
            self._frame_size += body

    def _lend(self, buffers: list[Piece], size: int) -> int | None:
        """Where in shared memory a body now lies; None if it has to go with its frame."""
        if self._shared is None or size < LARGE:
            return None
        at = self._shared.mine.lend(buffers, size)
        if at is not None:
            self._lent.add(at)
        return at

    def _forget(self, sent: int) -> None:
        unsent = self._unsent
        while sent:
            size = len(unsent[0])
            if sent < size:
                unsent[0] = memoryview(unsent[0])[sent:]
                return
            sent -= size
            unsent.popleft()
        while unsent and not len(unsent[0]):
            unsent.popleft()

    async def write(self) -> None:
        """The writing task: sends what `flush` could not."""
        while True:
            await self._signal.wait()
            self._writing = True
            while not self._lost and (self._unsent or self._queue):
                if not self._unsent:
                    if self.gate is not None and self.gate.full:
                        self.gate.behind.add(self.peer)  # the next flush goes on
                        break
                    self._encode_frame()
                try:
                    self._forget(await self.pipe.send_some(tuple(self._unsent)))
                except (OSError, trio.BrokenResourceError):
                    self._lost = True
            self._writing = False
            self._drained.set()

    # Receiving

    async def read(self, receive: Callable[[list[AnyMessage]], None]) -> None:
        """The reading task: calls `receive` with the messages of whatever arrives, until the peer has said goodbye.

        PeerLost if the connection ends before that; FrameError if what arrives cannot be right.
        """
        decoder = self._decoder
        while True:
            count = await self._receive(decoder)
            if not count:
                if self.said_goodbye:
                    return
                raise PeerLost(self.peer)
            messages = self._received(count)
            if messages:
                receive(messages)

    def read_now(self) -> list[AnyMessage]:
        """The messages that have arrived already; an end of the connection is left to the reading task."""
        try:
            count = self.pipe.try_receive_into(self._decoder.buffer())
        except OSError:
            return []
        return self._received(count) if count else []

    def _received(self, count: int) -> list[AnyMessage]:
        """The messages that so many more bytes complete; FrameError names the peer."""
        try:
            self._decoder.received(count)
        except (FrameError, MemoryError) as error:
            raise self._blame(error) from None
        return self._take()

    def decode(self, data: bytes) -> list[AnyMessage]:
        """The messages that these bytes of a ring complete; FrameError names the peer."""
        try:
            self._decoder.feed(data)
        except (FrameError, MemoryError) as error:
            raise self._blame(error) from None
        return self._take()

    def _blame(self, error: Exception) -> FrameError:
        why = str(error) or "there is no memory for its frame"
        return FrameError(f"worker {self.peer} cannot be understood: {why}")

    def _take(self) -> list[AnyMessage]:
        messages: list[AnyMessage] = []
        while (frame := self._decoder.take()) is not None:
            if isinstance(frame, QuickFrame):
                messages.append(decode_quick(frame, self.peer))
            else:
                messages += decode_messages(frame, self.peer)
        for message in messages:
            if type(message) is Goodbye:
                self.said_goodbye = True
            elif type(message) is BlocksReturned:
                self._take_back(message.blocks)
        return messages

    def _borrow(self, start: int, size: int) -> memoryview:
        assert self._shared is not None
        return self._shared.theirs.borrow(start, size, self._returned.append)

    def _take_back(self, blocks: list[int]) -> None:
        for block in blocks:
            if self._shared is None or block not in self._lent:
                raise FrameError(f"worker {self.peer} gives back shared memory that it has not got")
            self._lent.remove(block)
            self._shared.mine.give_back(block)

    async def _receive(self, decoder: FrameDecoder) -> int:
        try:
            if decoder.in_a_body:  # more of it has probably arrived: asking costs less than waiting
                count = self.pipe.try_receive_into(decoder.buffer())
                if count is not None:
                    return count
            return await self.pipe.receive_into(decoder.buffer)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            return 0

    async def close(self) -> None:
        """Ends the connection."""
        self._lost = True
        await self.pipe.close()
