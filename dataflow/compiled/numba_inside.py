"""What is used of numba's inside, with types: its published ones cover what users of it need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from numba.core.types.abstract import Type
from numba.core.typing.templates import Signature

Signatures: TypeAlias = str | tuple[Type, ...] | Signature
Implementation: TypeAlias = Callable[..., object]


class Codegen(Protocol):
    """Generates code for a machine."""

    def magic_tuple(self) -> tuple[object, ...]:
        """Which machine that is."""


class CompileTarget(Protocol):
    """What code is compiled for."""

    def codegen(self) -> Codegen:
        """The generator of its code."""

    def refresh(self) -> None:
        """Takes in what has been registered since."""


class Lifted(Protocol):
    """A loop that numba compiles by itself."""

    can_cache: bool


class Library(Protocol):
    """Machine code."""

    has_dynamic_globals: bool


class Compiled(Protocol):
    """The result of compiling a function for one signature."""

    signature: Signature
    lifted: Sequence[Lifted]
    library: Library

    def _reduce(self) -> tuple[object, ...]:
        """What can be pickled of it."""


class Cache(Protocol):
    """Where a function looks for compiled code, and leaves it."""

    def load_overload(self, sig: Signatures, target_context: CompileTarget) -> Compiled | None:
        """The code for a signature, if there is any."""

    def save_overload(self, sig: Signatures, data: Compiled) -> None:
        """Keeps the code for a signature."""


class Function(Protocol):
    """A function that is compiled for each signature in turn (numba's Dispatcher)."""

    py_func: Callable[..., object]
    targetctx: CompileTarget
    targetoptions: Mapping[str, object]
    overloads: Mapping[tuple[Type, ...], Compiled]
    compile: Callable[[Signatures], Implementation]
    _can_compile: bool
    _cache: Cache

    def disable_compile(self) -> None:
        """From now on there are no more signatures."""
