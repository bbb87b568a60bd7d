"""The types of what defines an intrinsic: a function that compiled code calls, written as machine instructions.

numba gives an intrinsic the type of its definition, which takes types and gives back a generator of code. Compiled code
calls it with values: so each is cast to how it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from llvmlite import ir
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature

Generate: TypeAlias = Callable[[BaseContext, ir.IRBuilder, Signature, Sequence[ir.Value]], ir.Value]
"""(what code is made for, where it is written, the types of the call, its arguments): the value of the call."""
Definition: TypeAlias = tuple[Signature, Generate]
