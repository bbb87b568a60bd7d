"""Prefaulting: a thread touches memory before it is needed.

Where the system must first get a page from its host, writing to it for the first time takes milliseconds (measured
here: 4.7 ms for each 2 MiB, ten to twenty times as long as clearing it). A table that grows, or a bin that arrives,
would make all records wait for that. So beyond what an array of segments has given out, some pages are kept ready.

The thread is compiled and holds no lock of Python's; it sleeps while it is ahead. In each page it replaces a zero by a
zero, atomically: whatever the worker writes there at the same moment stays. It does not touch what was given out,
except in an array that is a mirror of one, which nobody has written to.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.types.abstract import Type
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from dataflow.compiled.intrinsics import Definition
from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Int, Ints, Words

ENOUGH = 8 << 20  # bytes given out from which on a thread is worth its while
# Bytes that are kept ready: a quarter of what was given out, within these. Each worker has its own: 16 MiB at least
# were 256 MiB on 16 workers, cleared while they count their first records.
LEAST, MOST = 4 << 20, 64 << 20
_STEP = 4096  # bytes: a page of the smallest kind
_REST = 5000  # microseconds between two looks: what is kept ready lasts for longer
_NICE = 5  # who computes goes first

STOP, READY = 0, 1  # entries of the thread's own array: whether to end, and how many bytes are ready or given out


def _write_zero(typingctx: object, address: Type) -> Definition:
    """Writes zero to the word at an address if there is zero, atomically: its page is there afterwards, its contents
    are the same. (To add zero would do as well, but the compiler sees that nothing changes and leaves it out.)"""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        zero = ir.Constant(ir.IntType(64), 0)
        builder.cmpxchg(pointer, zero, zero, "monotonic", "monotonic")
        return context.get_dummy_value()

    return types.void(types.int64), generate


_touch = cast(Callable[[Int], None], intrinsic(_write_zero))  # as compiled code calls it


def _load(typingctx: object, array: Type, index: Type) -> Definition:
    """An entry of an array that another thread writes to, read again each time."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "monotonic", 8)

    return types.int64(array, types.int64), generate


_read = cast(Callable[[Ints, Int], Int], intrinsic(_load))


def _usleep(typingctx: object, microseconds: Type) -> Definition:
    """The system's own: by name, so that compiled code can be kept on disk."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
        function = cgutils.get_or_insert_function(builder.module, kind, "usleep")
        builder.call(function, [builder.trunc(args[0], ir.IntType(32))])
        return context.get_dummy_value()

    return types.void(types.int64), generate


_sleep = cast(Callable[[Int], None], intrinsic(_usleep))


@kernel("void(int64, int64[::1], int64, int64, int64, int64, int64[::1], boolean, boolean)", nogil=True)
def keep_ahead(
    base: Int, given: Ints, unit: Int, size: Int, least: Int, most: Int, own: Ints, once: bool, mirror: bool
) -> None:
    """Keeps pages ready beyond the `given[0]` units that are given out, of a mirror these as well, until it is told to
    stop; or does so `once`."""
    while _read(own, STOP) == 0:
        out = _read(given, 0) * unit
        if own[READY] < out and not mirror:
            own[READY] = out // _STEP * _STEP + _STEP  # the page that is being filled is there, or soon will be
        if own[READY] + _STEP <= min(size, out + max(least, min(most, out // 4))):
            _touch(base + own[READY])
            own[READY] += _STEP
        elif once:
            return
        else:
            _sleep(_REST)


def touch(words: Words, given: Ints, unit: int, until: int) -> None:
    """Touches the bytes from those that are given out to `until`, now."""
    keep_ahead(words.ctypes.data, given, unit, until, until, until, np.zeros(2, np.int64), True, False)


def start(words: Words, given: Ints, unit: int, size: int, ready: int = 0, mirror: bool = False) -> Ints:
    """Starts a thread for the first `size` bytes of an array, of which `given[0]` units of bytes are given out and the
    first `ready` bytes were touched before; what to write to in order to stop it. `mirror`: what is given out is given
    out in another array, and nobody has touched any of this one.

    The thread holds the array: memory that it may be touching is not unmapped before it has stopped.
    """
    own: Ints = np.array([0, ready // _STEP * _STEP], np.int64)

    def body() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        keep_ahead(words.ctypes.data, given, unit, size, LEAST, MOST, own, False, mirror)

    threading.Thread(target=body, name="prefault", daemon=True).start()
    return own
