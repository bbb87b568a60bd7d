"""Messages between two supervisors, whole, in the same frames as everything else."""

from __future__ import annotations

import trio

from dataflow.comm.frames import FrameDecoder, FrameEncoder
from dataflow.comm.handshake import Keys
from dataflow.comm.pipes import Pipe
from dataflow.errors import ProtocolError


class Talk:
    """A connection by which two parties that know each other say things."""

    def __init__(self, pipe: Pipe, keys: Keys) -> None:
        self._pipe = pipe
        self._encoder = FrameEncoder(keys.sending)
        self._decoder = FrameDecoder(keys.receiving)
        self._lock = trio.Lock()

    async def say(self, body: bytes) -> None:
        """Sends it, whole: whoever is cancelled in the middle leaves a connection that is good for nothing. If the
        connection has ended, the listening side will say so."""
        rest = memoryview(self._encoder.encode(b"", len(body)) + body)  # no header: results may be too large for one
        try:
            async with self._lock:
                while rest:
                    rest = rest[await self._pipe.send_some([rest]) :]
        except (OSError, trio.BrokenResourceError):
            return

    async def hear(self) -> bytes | memoryview | None:
        """Waits for a message; None if the connection has ended. ProtocolError if it makes no sense."""
        while (frame := self._decoder.take()) is None:
            try:
                count = await self._pipe.receive_into(self._decoder.buffer)
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                return None
            if not count:
                return None
            try:
                self._decoder.received(count)
            except MemoryError:
                raise ProtocolError("there is no memory for its frame") from None
        if frame.header:
            raise ProtocolError("a frame with a header, where supervisors send none")
        return frame.body

    async def close(self) -> None:
        """Ends the connection."""
        await self._pipe.close()
