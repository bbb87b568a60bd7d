"""The decorator of kernels: numba, with a disk cache of our own.

numba's own cache stops a program when a file in it is damaged, when the disk is full and when there is no folder that
can be written to; unpickles what anybody may have put there; does not see changes in what a kernel calls; and lets
several processes compile the same thing at once.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Literal, ParamSpec, TypedDict, TypeVar, Unpack, cast

import numba
import numpy as np
from numba.core import config, sigutils, typeinfer
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from dataflow.compiled.beforehand import note_used, take
from dataflow.compiled.cache_folder import Untrusted, open_cache_folder
from dataflow.compiled.entries import Damaged, Entry
from dataflow.compiled.numba_inside import Compiled, CompileTarget, Function, Implementation, Signatures
from dataflow.compiled.stamp import stamp
from dataflow.compiled.telling import teller

P = ParamSpec("P")
T = TypeVar("T")


class KernelOptions(TypedDict, total=False):
    """Those of `numba.njit` that kernels use."""

    nogil: bool
    error_model: Literal["python", "numpy"]


def kernel(*signatures: Signatures, **options: Unpack[KernelOptions]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Compiles a function for these signatures, or without any when it is called; what was compiled is kept on disk."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        jitted: object = numba.njit(**options)(function)
        if isinstance(jitted, Dispatcher):  # not if NUMBA_DISABLE_JIT is set
            dispatcher = cast(Function, jitted)
            keep(dispatcher, stamp(function))
            if signatures:
                with typeinfer.register_dispatcher(dispatcher):
                    for signature in signatures:
                        dispatcher.compile(signature)
                    dispatcher.disable_compile()
        return cast(Callable[P, T], jitted)

    return decorate


def keep(dispatcher: Function, depends_on: str, fold: str | None = None) -> None:
    """Has what a dispatcher compiles kept on disk. `depends_on`: another text, other code.

    `fold`: the name of a user's function, for people.
    """
    cache = dispatcher._cache = Kept(dispatcher, depends_on)
    compile_now = dispatcher.compile

    def compile_once(signature: Signatures) -> Implementation:
        """Compiles, unless the code is on disk. If another process is compiling it, waits until that is done."""
        with global_compiler_lock:  # first: who waits for another process must not hold what a thread here needs
            if cache.knows(signature) or cache.find(signature):
                return compile_now(signature)
            with open_cache_folder() as folder, teller.compiling(fold, None if folder is None else folder.short):
                if folder is None:
                    return compile_now(signature)
                with cache.entry(signature).locked(folder):
                    return compile_now(signature)

    dispatcher.compile = compile_once


def rebuild(content: bytes) -> Compiled:
    """What was written, from a folder and a file that only we can write to."""
    context = cpu_target.target_context
    context.refresh()
    context.codegen().magic_tuple()  # looked up once, which takes a while
    try:
        result: Compiled = CompileResult._rebuild(context, *pickle.loads(content))  # noqa: S301
    except Exception as error:  # whatever the code refers to may be gone; it can be compiled again
        raise Damaged(f"compiled code cannot be loaded ({type(error).__name__}: {error})") from error
    return result


class Kept(_Cache):
    """numba's view of our files: one function's."""

    def __init__(self, dispatcher: Function, depends_on: str) -> None:
        self._dispatcher = dispatcher
        function = dispatcher.py_func
        self._label = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")[-120:]
        settings = [getattr(config, name) for name in ("OPT", "BOUNDSCHECK")]
        versions = (numba.__version__, np.__version__, sys.version, *settings)
        self._depends_on = f"{self._label} {versions} {sorted(dispatcher.targetoptions.items())}\n{depends_on}"
        self._found: dict[Signatures, Compiled] = {}

    @property
    def cache_path(self) -> str | None:
        with open_cache_folder() as folder:
            return None if folder is None else str(folder.path)

    def knows(self, signature: Signatures) -> bool:
        """Whether the dispatcher has that already, or will refuse it."""
        args, _ = sigutils.normalize_signature(signature)
        return tuple(args) in self._dispatcher.overloads or not self._dispatcher._can_compile

    def entry(self, signature: Signatures) -> Entry:
        """Where the code for a signature is kept."""
        args, result = sigutils.normalize_signature(signature)
        machine = self._dispatcher.targetctx.codegen().magic_tuple()
        return Entry(f"{args} {result} {machine}\n{self._depends_on}", self._label)

    def find(self, signature: Signatures) -> bool:
        """Whether the code is on disk; then it has been loaded."""
        found = self._read(signature)
        if found is not None:
            self._found[signature] = found
        return found is not None

    def load_overload(self, sig: Signatures, target_context: CompileTarget) -> Compiled | None:
        found = self._found.pop(sig, None)
        return self._read(sig) if found is None else found

    def _read(self, signature: Signatures) -> Compiled | None:
        entry = self.entry(signature)
        note_used(entry)
        if (loaded := take(entry.key)) is not None:
            return self._checked(signature, loaded)
        with open_cache_folder() as folder:
            if folder is None:
                return None
            try:
                content = entry.read(folder)
                return None if content is None else self._checked(signature, rebuild(content))
            except (Damaged, Untrusted) as error:
                entry.discard(folder)
                said = f"{error}: it is discarded, and {self._label} compiled again"
                teller.warn("damaged", said, for_all=False)
                return None

    def _checked(self, signature: Signatures, result: Compiled) -> Compiled:
        args, _ = sigutils.normalize_signature(signature)
        if tuple(result.signature.args) != tuple(args):
            raise Damaged(f"compiled code for {args} is for {result.signature.args}")
        return result

    def save_overload(self, sig: Signatures, data: Compiled) -> None:
        if any(not lifted.can_cache for lifted in data.lifted) or data.library.has_dynamic_globals:
            return  # it holds addresses of this process
        content = dumps(data._reduce())
        with open_cache_folder() as folder:
            if folder is None:
                return
            try:
                self.entry(sig).write(folder, content)
            except OSError as error:
                why = (
                    f"compiled code cannot be kept in {folder.path} ({error.strerror}): the next run compiles it again"
                )
                teller.warn("full", why)

    def enable(self) -> None:
        """Nothing to do: it is always on."""

    def disable(self) -> None:
        """Nothing to do: numba never asks for it."""

    def flush(self) -> None:
        """`recompile` begins with it: what is on disk may stay, since it says what it depends on."""
