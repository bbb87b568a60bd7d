"""What answers can reach: the run, from the process where its socket is; and one worker, where that works."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import trio

from dataflow.asking.messages import Arguments, Question, Refused, encode_answer, encode_refusal
from dataflow.errors import DataflowError

T = TypeVar("T")
AskWorker = Callable[[int, Question], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run from its start to its end."""

    name: str
    pid: int  # of the process that has the socket
    workers: int
    since: float  # wall clock, in seconds since 1970


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run, for those who answer questions about it. `ask_worker` raises Refused if there is no answer."""

    facts: RunFacts
    ask_worker: AskWorker
    stopping: trio.Event = field(default_factory=trio.Event)  # set when the run has been asked to stop

    async def present(self) -> list[int]:
        """The workers that take part now, and those that are leaving. Worker 0 knows; while it cannot answer, those
        that the run began with, of whom each will say why it does not."""
        try:
            answer = await self.ask_worker(0, Question("members"))
        except Refused:
            return list(range(self.facts.workers))
        members, _, leaving = cast(tuple[list[int], int | None, list[int]], answer)  # as `answers.scale` gives it
        return sorted({*members, *leaving})

    async def ask_all(self, question: Question) -> dict[int, object]:
        """The answers of all workers, at the same time; of one that gives none, `Refused`."""
        answers: dict[int, object] = {}
        present = await self.present()

        async def ask(worker: int) -> None:
            try:
                answers[worker] = await self.ask_worker(worker, question)
            except Refused as error:
                answers[worker] = error

        async with trio.open_nursery() as nursery:
            for worker in present:
                nursery.start_soon(ask, worker)
        return dict(sorted(answers.items()))


Answering = Callable[[T, Arguments], Awaitable[object]]


async def answer(question: Question, to: T, known: Mapping[str, Answering[T]]) -> bytes:
    """The answer to a question, encoded. Whatever goes wrong with it is told to whoever asks: the run goes on."""
    answering = known.get(question.name)
    if answering is None:
        return encode_refusal(f"this run does not know {question.name!r}; it knows: {', '.join(sorted(known))}")
    try:
        return encode_answer(await answering(to, question.arguments))
    except DataflowError as error:
        return encode_refusal(str(error))
    except Exception as error:  # a mistake of ours, which must not end somebody's run: both sides are told
        traceback.print_exception(error)
        return encode_refusal(f"{question.name!r} failed in the run: {type(error).__name__}: {error}")


def worker_unknown(worker: int) -> Refused:
    """Whoever asks a worker that cannot be asked gets this."""
    return Refused(f"worker {worker} cannot be asked from here: it is on a host that joined later, or has ended")
