"""Ten times what a dataflow can do, for minutes: memory stays bounded, nothing is lost, latency recovers, and the page
says why.

Two workers count words in rows. First they go as fast as they can: that is the sustainable rate. Then records are due
by the clock, at half of it, at ten times of it for a while, and at half of it again. Who sends is held back by `room`
and by a probe, as producers are by a full socket: what is due and not sent stays with them. In the experiment
`overload` they keep all of it, and it is sent afterwards, as from a log: the stretch of work that ten times the rate
leaves behind is ten times as long as that while. In `overload-minutes` what they still have when the overload ends is
not sent any more, so that the overload itself can take minutes.

A thread looks at the run once a second, from outside, as the page does.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

import dataflow
import megaphone
from bench.registry import benchmark
from bench.run import Run
from dataflow.asking.client import NoSuchRun
from dataflow.asking.messages import Refused
from dataflow.commands.asking import Status, reasons_between
from dataflow.run.reasons import Reason

EACH = 100  # records that are sent at once
WORDS = 2_000
TIMES = 10
Phases = Sequence[tuple[str, float, float]]
"""Name, seconds, and how many times the sustainable rate."""


@dataclass
class OverloadSeen:
    """What one worker saw."""

    sent: int = 0
    counted: int = 0
    rate: float = 0.0  # sustainable, of this worker's records
    latencies: dict[str, list[float]] = field(default_factory=dict)  # by phase, from when records were due
    phases: dict[str, tuple[float, float]] = field(default_factory=dict)  # when each began and ended, by the wall clock
    drained: float = 0.0  # seconds until nothing was owed any more, after the overload
    held_back: float = 0.0  # records that producers still had when the overload ended


@benchmark("overload", "ten times the sustainable rate: memory, latency before and after, nothing lost")
def overload(run: Run) -> None:
    """Everything that was due is sent in the end."""
    calm, long = (2.0, 1.0) if run.quick else (5.0, 10.0)
    phases = (("before", calm, 0.5), ("overload", long, float(TIMES)), ("after", 0.0, 0.5), ("again", calm, 0.5))
    _measure(run, phases, ("overload", "after"))


@benchmark("overload-minutes", "ten times the sustainable rate for minutes, with producers that are held back")
def overload_minutes(run: Run) -> None:
    """What producers still have when the overload ends is not sent."""
    calm, long = (2.0, 5.0) if run.quick else (20.0, 150.0)
    phases = (("before", calm, 0.5), ("overload", long, float(TIMES)), ("again", calm, 0.5))
    _measure(run, phases, ("overload",))


def _measure(run: Run, phases: Phases, pressed: Sequence[str]) -> None:
    name, over = f"overload-{os.getpid()}", threading.Event()
    outside = Outside(name)
    looker = threading.Thread(target=outside.run, args=(over,), name="looker")
    looker.start()
    try:
        seen = dataflow.execute(_main, phases, 2.0 if run.quick else 5.0, workers=2, name=name)
    finally:
        over.set()
        looker.join()
    sent, counted = sum(each.sent for each in seen), sum(each.counted for each in seen)
    run.report("sustainable rate", sum(each.rate for each in seen), "records/s")
    run.report("records that were counted, of those sent", counted, "records", sent)
    first = outside.memory(*seen[0].phases["before"])
    for phase, _, _ in phases:
        run.report(f"{phase}: most memory of a worker", outside.memory(*seen[0].phases[phase]), "MiB", first)
        times = sorted(second for each in seen for second in each.latencies.get(phase, ()))
        if times and phase != "after":
            run.report(f"{phase}: median latency", 1000 * times[len(times) // 2], "ms")
            run.report(f"{phase}: .99", 1000 * times[int(0.99 * (len(times) - 1))], "ms")
    if any(each.drained for each in seen):
        run.report("from the end of the overload until nothing was owed", max(each.drained for each in seen), "s")
    else:
        run.report("records that producers still had", sum(each.held_back for each in seen), "records")
    for phase in (*pressed, "again"):
        _tell_reasons(run, phase, outside.reasons(*seen[0].phases[phase]))


def _tell_reasons(run: Run, phase: str, told: Sequence[Sequence[Reason]]) -> None:
    named = sum(any(reason.level != "calm" for reason in reasons) for reasons in told)
    run.report(f"{phase}: looks at which the page named a cause", named, "looks", len(told))
    first: dict[str, str] = {}  # by sentence without its numbers, one with them
    counts: Counter[str] = Counter()
    for reasons in told:
        text = re.sub(r"[0-9.]+", "", reasons[0].text)
        first.setdefault(text, reasons[0].text)
        counts[text] += 1
    said = "\n".join(f"{count} times: {first[text]}" for text, count in counts.most_common(6))
    run.tell(f"{phase}: what the page said first:\n{said}")


class Outside:
    """Looks at a run once a second."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: list[tuple[float, float, list[Reason]]] = []  # wall clock, MiB of the worker that has most, reasons

    def run(self, over: threading.Event) -> None:
        """Until it is over. A run that has not begun, or has ended, cannot be asked."""
        before: Status | None = None
        while not over.wait(1.0):
            try:
                now = Status(self._name)
            except (NoSuchRun, Refused):
                continue
            if before is not None:
                most = max((worker.memory for worker in now.workers), default=0) / 2**20
                self._seen.append((time.time(), most, reasons_between(before, now)))
            before = now

    def memory(self, begin: float, end: float) -> float:
        """The most between two moments."""
        return max((memory for when, memory, _ in self._seen if begin <= when <= end), default=0.0)

    def reasons(self, begin: float, end: float) -> list[list[Reason]]:
        """What was said. Each look explains the second before it, so the first is left out."""
        return [reasons for when, _, reasons in self._seen if begin + 1 <= when <= end]


def _slow(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]


async def _main(worker: dataflow.Worker, phases: Phases, trial: float) -> OverloadSeen:
    seen = OverloadSeen()

    def counted(_: int, pair: tuple[str, int]) -> None:
        seen.counted += 1

    with worker.dataflow("words") as scope:
        feed, stream = scope.input(name="words")
        totals = megaphone.state_machine(scope.control(), stream, fold=_slow, bins=64, name="totals")
        probe = totals.inspect(counted).probe()
    line = _Line(worker, feed, probe, seen)
    began = time.perf_counter()
    while time.perf_counter() - began < trial:
        await line.send(EACH, None)
    await probe.wait_passed(line.epoch - 1)
    seen.rate = seen.sent / (time.perf_counter() - began)
    await line.follow(phases)
    feed.close()
    await probe.wait_done()
    return seen


class _Line:
    """Sends what is due, and notes when it was complete."""

    def __init__(
        self, worker: dataflow.Worker, feed: dataflow.InputHandle, probe: dataflow.Probe, seen: OverloadSeen
    ) -> None:
        self._worker, self._feed, self._probe, self._seen = worker, feed, probe, seen
        self.epoch = 0
        self._open: list[tuple[int, float, str]] = []  # epochs that are not complete: when they were due, the phase
        self._names = [f"word {number}" for number in range(WORDS)]

    async def send(self, count: int, due: tuple[float, str] | None) -> None:
        """Sends so many records at a time of their own."""
        start = self._seen.sent
        self._feed.send([(self._names[(start + n) * 7 % WORDS], 1) for n in range(count)])
        self._seen.sent += count
        self.epoch += 1
        self._feed.advance_to(self.epoch)
        if due is not None:
            self._open.append((self.epoch - 1, *due))
        await self._worker.room()
        await self._probe.wait_passed(self.epoch - 50)
        self._note()

    def _note(self) -> None:
        now = time.perf_counter()
        while self._open and self._probe.passed(self._open[0][0]):
            _, due, phase = self._open.pop(0)
            self._seen.latencies.setdefault(phase, []).append(now - due)

    async def follow(self, phases: Phases) -> None:
        """Each phase in turn. One of no seconds lasts until nothing is owed."""
        for name, seconds, times in phases:
            began, sent, rate = time.perf_counter(), self._seen.sent, times * self._seen.rate
            owed_before, when = self._owed if name == "after" else 0.0, time.time()
            while True:
                past = time.perf_counter() - began
                self._owed = owed_before + rate * past - (self._seen.sent - sent)
                if past >= seconds if seconds else self._owed < EACH:
                    break
                if self._owed < EACH:
                    await trio.sleep(0.002)
                    self._note()
                else:
                    await self.send(EACH, (time.perf_counter() - max(0.0, self._owed - EACH) / max(rate, 1.0), name))
            self._seen.phases[name] = (when, time.time())
            if name == "after":
                self._seen.drained = time.perf_counter() - began
            elif name == "overload":
                self._seen.held_back = self._owed

    _owed = 0.0
