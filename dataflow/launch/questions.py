"""Questions that a worker's process was asked and has not answered. Pure, but for those who wait.

docs/internals/asking.md has the way of a question.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import trio

from dataflow.asking.messages import Refused, decode_answer


@dataclass(frozen=True, slots=True)
class Answered:
    """A worker has answered a question."""

    number: int
    answer: bytes  # see dataflow.asking.messages


@dataclass(slots=True)
class AwaitedAnswer:
    """A question whose answer somebody waits for."""

    number: int
    _done: trio.Event = field(default_factory=trio.Event)
    _answer: bytes | None = None
    _why: str = ""

    def hear(self, answer: bytes) -> None:
        """That is the answer."""
        self._answer = answer
        self._done.set()

    def give_up(self, why: str) -> None:
        """There will be none."""
        self._why = why
        self._done.set()

    async def wait(self) -> object:
        """Waits for the answer; Refused if the worker refuses, or cannot answer any more."""
        return decode_answer(await self.wait_bytes())

    async def wait_bytes(self) -> bytes:
        """Waits for the answer, or the refusal, as it came; Refused if the worker cannot answer any more."""
        await self._done.wait()
        if self._answer is None:
            raise Refused(self._why)
        return self._answer


class Questions:
    """Those of one process."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[int, AwaitedAnswer] = {}
        self._over = ""  # why nobody can be asked any more

    @contextmanager
    def asked(self) -> Iterator[AwaitedAnswer]:
        """A new question, which is forgotten at the end of the block."""
        if self._over:
            raise Refused(self._over)
        self._last += 1
        asked = self._open[self._last] = AwaitedAnswer(self._last)
        try:
            yield asked
        finally:
            del self._open[asked.number]

    def answered(self, event: Answered) -> None:
        """An answer has come. Nobody may wait for it any more."""
        asked = self._open.get(event.number)
        if asked is not None:
            asked.hear(event.answer)

    def give_up(self, why: str, for_good: bool = False) -> None:
        """What was asked will not be answered."""
        for asked in self._open.values():
            asked.give_up(why)
        if for_good:
            self._over = why
