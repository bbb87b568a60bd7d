"""Ten times what a dataflow can do: memory stays bounded, nothing is lost, latency recovers, and the page says why.

Two workers count words in rows, and nearly all words are at worker 1. First they go as fast as they can: that is the
sustainable rate. Then records are due by the clock, at half of it, at ten times of it for a while, and at half of it
again; what is due and not sent yet waits outside of the engine, as in a log. The stretch of work that ten times the
rate leaves behind is ten times as long as that while.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

import dataflow
import megaphone
from bench.registry import benchmark
from bench.run import Run
from dataflow.page.reasons import find_reasons
from dataflow.run.readings import WorkerReading, read_worker
from dataflow.run.worker import pump_of

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
    memory: dict[str, int] = field(default_factory=dict)  # by phase, the most
    reasons: dict[str, Counter[str]] = field(default_factory=dict)  # by phase, what the page would say
    drained: float = 0.0  # seconds until nothing was owed any more, after the overload


@benchmark("overload", "ten times the sustainable rate: memory, latency before and after, nothing lost")
def overload(run: Run) -> None:
    """Reports the larger of the two workers' numbers."""
    calm, long = (2.0, 1.0) if run.quick else (5.0, 10.0)
    phases = (("before", calm, 0.5), ("overload", long, float(TIMES)), ("after", 0.0, 0.5), ("again", calm, 0.5))
    seen = dataflow.execute(_main, phases, 2.0 if run.quick else 5.0, workers=2, name="bench")
    sent, counted = sum(each.sent for each in seen), sum(each.counted for each in seen)
    run.report("sustainable rate", sum(each.rate for each in seen), "records/s")
    run.report("records that were counted, of those sent", counted, "records", sent)
    for phase, _, _ in phases:
        memory, first = (max(each.memory.get(name, 0) for each in seen) / 2**20 for name in (phase, "before"))
        run.report(f"{phase}: most memory of a worker", memory, "MiB", first)
        times = sorted(second for each in seen for second in each.latencies.get(phase, ()))
        if times and phase != "after":
            run.report(f"{phase}: median latency", 1000 * times[len(times) // 2], "ms")
            run.report(f"{phase}: .99", 1000 * times[int(0.99 * (len(times) - 1))], "ms")
    run.report("from the end of the overload until nothing was owed", max(each.drained for each in seen), "s")
    said: dict[str, str] = {}  # by sentence without its numbers, one with them
    for each in seen:
        for phase in ("overload", "after"):
            said |= {re.sub(r"[0-9.]+", "", text): text for text in each.reasons.get(phase, {})}
    run.tell("What the page says meanwhile:\n" + "\n".join(said.values()))


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
        self._was: WorkerReading | None = None
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
            owed_before = self._owed if name == "after" else 0.0
            looked = 0.0
            while True:
                past = time.perf_counter() - began
                self._owed = owed_before + rate * past - (self._seen.sent - sent)
                if past >= seconds if seconds else self._owed < EACH:
                    break
                if past - looked > 1.0 or not looked:
                    looked = past
                    self._look(name)
                if self._owed < EACH:
                    await trio.sleep(0.002)
                    self._note()
                else:
                    await self.send(EACH, (time.perf_counter() - max(0.0, self._owed - EACH) / max(rate, 1.0), name))
            if name == "after":
                self._seen.drained = time.perf_counter() - began

    _owed = 0.0

    def _look(self, phase: str) -> None:
        now = read_worker(pump_of(self._worker))
        self._seen.memory[phase] = max(self._seen.memory.get(phase, 0), now.memory)
        if self._was is not None:
            told = find_reasons([(self._was, now, max(1e-3, now.when - self._was.when))])
            self._seen.reasons.setdefault(phase, Counter()).update(text for _, text in told)
        self._was = now
