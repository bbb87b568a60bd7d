"""Messages on a connection between a supervisor and its processes: a length, and so many bytes. Pure."""

from __future__ import annotations

import struct

_LENGTH = struct.Struct("<Q")


class TooLong(ValueError):
    """A message is longer than it may be."""


def frame(message: bytes) -> bytes:
    """A message as it is sent.

    >>> cut_message(bytearray(frame(b"one") + frame(b"two")))
    b'one'
    """
    return _LENGTH.pack(len(message)) + message


def cut_message(received: bytearray, longest: int | None = None) -> bytes | None:
    """The first whole message of what was received, taken off the front; None if it is not whole yet. TooLong, as soon
    as that can be seen, if it has more bytes than `longest`: for those who are not trusted."""
    if len(received) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(received)
    if longest is not None and length > longest:
        raise TooLong(f"a message of {length} bytes, and at most {longest} are allowed")
    if len(received) < _LENGTH.size + length:
        return None
    message = bytes(received[_LENGTH.size : _LENGTH.size + length])
    del received[: _LENGTH.size + length]
    return message
