"""What loops over records do for a block of them at once: fetch rows before they are used, and count. Compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.types.abstract import Type
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from dataflow.compiled.intrinsics import Definition
from dataflow.state.arrays import Ctl, Int, Ints, Meta, Word, Words
from dataflow.state.memory.allocation import BLOCKS

BLOCK = 64  # rows that are fetched from memory together, of a hash table
AHEAD = np.uint64(16)  # rows that are fetched before they are used, of a dense one
NEAR = 1 << 14  # bins whose numbers are near anyway
_COUNTED = 1 << 16  # bins whose records are all counted
_ONE_IN = 61  # blocks, where there are more bins, stands for the others; a prime, since inputs may take turns


def _fetch(typingctx: object, words: Type, index: Type) -> Definition:
    """Asks for the cache line of a word ahead of its use."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(array.data, [args[1]])
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), *[ir.IntType(32)] * 3])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, *(ir.Constant(ir.IntType(32), n) for n in (1, 3, 1))])
        return context.get_dummy_value()

    return types.void(words, types.int64), generate


fetch_row = cast(Callable[[Words | Meta | Ints, np.int64], None], intrinsic(_fetch))  # as compiled code calls it


@njit()
def weight_of(meta: Meta, ctl: Ctl) -> Int:
    """What a record of the next block counts for. With very many bins each count costs a cache miss, so some blocks
    stand for the others there."""
    if meta.shape[0] <= _COUNTED:
        return 1
    ctl[BLOCKS] += 1
    return _ONE_IN if ctl[BLOCKS] % _ONE_IN == 0 else 0


@njit()
def fetch_meta(meta: Meta, number: Int, bin: Word) -> None:
    """Asks for one of a bin's numbers ahead of its use."""
    fetch_row(meta.T.reshape(-1), np.int64(number * meta.shape[0] + np.int64(bin)))
