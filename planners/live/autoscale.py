"""The autoscaler beside a run: reads what its workers have counted, decides how many there should be, asks for them.

It knows the run through its door alone (`python -m dataflow list`). What a source would bring in if it never had to
wait is known to whoever feeds it (`offered`); otherwise it is taken to be what it brought in, by the time in which it
did not wait for room: a source that is held back for half of the time offers twice as much.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from dataflow.asking.client import NoSuchRun, ask_run
from dataflow.asking.messages import Question
from dataflow.comm.codec import require_list
from dataflow.errors import DataflowError
from dataflow.run.readings import WorkerReading
from planners.errors import BadRequest
from planners.live.running import PATIENCE, Ask
from planners.scaling.autoscaler import Autoscaler
from planners.scaling.driver import ScaleDriver
from planners.scaling.readings import work_between

LONGEST = 600.0  # seconds that a change may take
_WAITED = 0.9  # at most that share of the time: what is offered by one that only waits is not known

Offered = Callable[[], Mapping[str, float]]


class AskedChange:
    """A change that a thread asks for and waits for. `error`: why it was not made."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self.error: str | None = None
        self._thread = threading.Thread(target=self._run, args=(ask,), daemon=True)
        self._thread.start()

    def _run(self, ask: Callable[[], object]) -> None:
        try:
            ask()
        except DataflowError as error:
            self.error = str(error)

    @property
    def done(self) -> bool:
        """Whether it was made, or refused."""
        return not self._thread.is_alive()


class RunningWorkers:
    """The workers of a run that is under way: what they have counted, and how many there shall be."""

    def __init__(self, run: str, ask: Ask = ask_run) -> None:
        self._run, self._ask = run, ask
        self.change: AskedChange | None = None

    def read(self) -> list[WorkerReading]:
        """What each has counted. NoSuchRun when the run has ended."""
        _, readings, silent = require_list(self._ask(self._run, Question("status"), PATIENCE), 3)
        found = [each for each in require_list(readings) if isinstance(each, WorkerReading)]
        return [] if silent or not found else found

    def scale(self, workers: int, /) -> AskedChange:
        """Asks for so many workers, and returns at once."""
        question = Question("scale", {"workers": workers, "timeout": LONGEST})
        self.change = AskedChange(lambda: self._ask(self._run, question, LONGEST + PATIENCE))
        return self.change


class ScalingBeside:
    """The autoscaler beside a run. `step` is one interval; what it decided is a list of lines, for people."""

    def __init__(
        self,
        workers: RunningWorkers,
        autoscaler: Autoscaler,
        *,
        dry_run: bool = False,
        offered: Offered = dict,
    ) -> None:
        """`offered`: by name of a source (`input`, unless it has another), records a second, as far as that is
        known."""
        self._workers, self._offered = workers, offered
        self._driver = ScaleDriver(workers, autoscaler, dry_run=dry_run)
        self._before: list[WorkerReading] = workers.read()
        self._told: AskedChange | None = None

    def step(self) -> list[str]:
        """Reads, decides, and asks for workers. NoSuchRun when the run has ended."""
        after = self._workers.read()
        said = self._outcome()
        known = {**estimated(self._before, after), **self._offered()}
        seen = work_between(self._before, after, known)
        self._before = after
        if seen is None:
            return [*said, "workers have come or gone: nothing to compare"]
        decision = self._driver.step(seen)
        if decision is None:
            return [*said, f"{seen.workers} workers, and a change is under way"]
        return [*said, f"{'(dry run) ' if self._driver.dry_run else ''}{decision}"]

    def _outcome(self) -> list[str]:
        change = self._workers.change
        if change is None or change is self._told or not change.done:
            return []
        self._told = change
        return [f"that was refused: {change.error}" if change.error else "that is done"]

    def run(self, every: float, tell: Callable[[str], None], over: Callable[[], bool]) -> None:
        """Steps until the run has ended, or it is over."""
        while not over():
            time.sleep(every)
            try:
                for line in self.step():
                    tell(line)
            except NoSuchRun:
                tell("the run has ended")
                return


def estimated(before: Sequence[WorkerReading], after: Sequence[WorkerReading]) -> dict[str, float]:
    """By name of a source, what it would have brought in if it had not waited for room; records a second."""
    first = {each.worker: each for each in before}
    rates: dict[str, float] = {}
    for reading in after:
        old = first.get(reading.worker)
        if old is None or old.pid != reading.pid or reading.when <= old.when:
            continue
        seconds = reading.when - old.when
        sent = {name: count - _sent(old).get(name, 0) for name, count in _sent(reading).items()}
        active = sum(1 for count in sent.values() if count > 0)
        waited = min(_WAITED, (reading.waiting - old.waiting) / seconds / max(1, active))
        for name, count in sent.items():
            rates[name] = rates.get(name, 0.0) + max(0, count) / seconds / (1.0 - max(0.0, waited))
    return rates


def _sent(reading: WorkerReading) -> dict[str, int]:
    """By name, what the sources of a worker have sent."""
    sent: dict[str, int] = {}
    for flow in reading.dataflows:
        for each in flow.operators:
            if not any(edge.source >= 0 for edge in each.edges):
                sent[each.name] = sent.get(each.name, 0) + each.records_out
    return sent


def read_offered(texts: Sequence[str]) -> dict[str, float]:
    """What `--offered NAME=RATE` says.

    >>> read_offered(["input=5e4"])
    {'input': 50000.0}
    """
    found = {}
    for text in texts:
        name, _, rate = text.rpartition("=")
        try:
            found[name] = float(rate)
        except ValueError:
            found[name] = -1.0
        if not name or not found[name] >= 0:
            raise BadRequest(f"--offered is NAME=RATE, a source and its records per second, not {text!r}")
    return found
