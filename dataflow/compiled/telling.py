"""Saying what is being compiled, and what is wrong with the folder where it is kept: once each, on standard error.

Compiling is announced on a terminal only. Workers of one host compile the same functions (and wait for each other), so
one of them speaks for all: the supervisor says which, and whether its own standard error is a terminal, since theirs is
a pipe.
"""

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


def on_a_terminal() -> bool:
    """Whether somebody may be looking at this process's standard error."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it is closed
        return False


@dataclass(frozen=True, slots=True)
class Voice:
    """What a process may say about compiling."""

    terminal: bool  # whether what it says ends up on a terminal
    speaks: bool = True  # whether it speaks for all workers of its host


@dataclass
class Batch:
    """What has been compiled since something was last said."""

    kernels: int = 0
    folds: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        parts = [f"the fold `{name}`" for name in self.folds]
        if self.kernels:
            parts.insert(0, f"{self.kernels} kernel{'' if self.kernels == 1 else 's'}")
        return " and ".join(parts)


class Teller:
    """What one process says. A forked process goes on where its parent was; `speak_as` gives it its own voice."""

    def __init__(self) -> None:
        self._voice: Voice | None = None  # None: look at standard error when there is something to say
        self._said: set[str] = set()  # subjects of warnings
        self._announced: set[str] = set()  # "kernels", and folds
        self._batch: Batch | None = None
        self._depth = 0

    def speak_as(self, voice: Voice) -> None:
        """From now on this process speaks with that voice, about what it does itself."""
        self._voice, self._batch, self._depth = voice, None, 0

    @contextmanager
    def compiling(self, fold: str | None, where: str | None) -> Iterator[None]:
        """Around compiling a kernel, or a fold of that name; or waiting for somebody who compiles it.

        A fold is the last thing that an operator has compiled, so its end is the end of a batch.
        """
        if self._depth:  # a kernel that a kernel calls
            yield
            return
        if self._batch is None:
            self._batch = Batch()
            self._announce(fold, where)
        batch, self._depth, started = self._batch, 1, time.monotonic()
        try:
            yield
        finally:
            self._depth = 0
            batch.seconds += time.monotonic() - started
        if fold is None:
            batch.kernels += 1
        else:
            batch.folds.append(fold)
            self.close()

    def close(self) -> None:
        """Says what was compiled, if anything was."""
        batch, self._batch = self._batch, None
        if batch is not None and str(batch) and self._is_seen():
            _say(f"compiled {batch} in {batch.seconds:.1f} s")

    def warn(self, subject: str, message: str, for_all: bool = True) -> None:
        """Says that something is wrong, once for each subject. `for_all`: every worker of the host finds the same."""
        speaks = self._voice is None or self._voice.speaks or not for_all
        if speaks and subject not in self._said:
            self._said.add(subject)
            _say(message)

    def _announce(self, fold: str | None, where: str | None) -> None:
        what = "kernels" if fold is None else f"the fold `{fold}`"
        if what not in self._announced and self._is_seen():  # some kernels are compiled late: they are the same news
            self._announced.add(what)
            kept = "every run does it again, since nothing can be kept" if where is None else f"once: kept in {where}"
            _say(f"compiling {what} ({kept})")

    def _is_seen(self) -> bool:
        voice = self._voice or Voice(on_a_terminal())
        return voice.terminal and voice.speaks


def _say(message: str) -> None:
    if sys.stderr is not None:
        print(f"dataflow: {message}", file=sys.stderr, flush=True)


teller = Teller()
atexit.register(teller.close)
