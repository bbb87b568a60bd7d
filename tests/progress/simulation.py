"""A pure simulation of N workers that follow the progress protocol, judged after every event.

Each worker has its own tracker, `Outbox` and `Inbox`. Operators do at random what the rules allow; a seeded generator
chooses every flush, every delivery and every delay. The simulation alone knows the true state, and compares every
worker's view with it:

- safety: no frontier is ahead of a pointstamp that truly exists, nor does one ever move backwards;
- liveness: once everything is dropped, taken and delivered, every frontier is empty and every tracker complete.

`run_case(seed)` runs one random case. The classes at the end break the protocol on purpose: the tests show that this
is noticed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from dataflow.progress.broadcast import Inbox, Outbox, ProgressBatch
from dataflow.progress.graph import Graph, Location, Source, Target
from dataflow.progress.tracker import Change, Tracker, make_tracker
from tests.oracles import progress as oracle
from tests.progress.graphs import graph_of_seed, later_time

Time = Any


ACTIONS = ("send", "clone", "delay", "downgrade", "drop")
TEMPERS = (  # how often an operator does what with a capability, case by case: those who hold on, and those who let go
    (3, 1, 1, 2, 1),
    (2, 0, 1, 4, 3),
    (3, 0, 0, 1, 6),
)

EVENTS = ("step", "flush", "deliver")
WEATHERS = (  # how often what happens, case by case: prompt delivery, or long queues of small or of great batches
    (2, 1, 2),
    (2, 2, 1),
    (6, 1, 1),
)


class Unsafe(AssertionError):
    """A worker's view is ahead of the truth, or went backwards."""


@dataclass(frozen=True)
class Message:
    """Records on their way to one worker. Data may overtake data, and progress."""

    target: Target
    time: Time


@dataclass(eq=False)
class Capability:
    """The right to send at `time` or later; told apart by identity."""

    source: Source
    time: Time


class Worker:
    """One worker: what it holds, and what it believes."""

    def __init__(self, number: int, tracker: Tracker) -> None:
        self.number = number
        self.tracker = tracker
        self.outbox = Outbox(number)
        self.inbox = Inbox()
        self.capabilities: list[Capability] = []
        self.arrived: list[Message] = []  # for this worker, not taken yet; any of them may be taken next
        self.view = self.look()

    def look(self) -> dict[Location, tuple[Time, ...]]:
        """The frontier at every location, as this worker sees it now."""
        return {location: tuple(self.tracker.frontier(i)) for i, location in enumerate(self.tracker.graph.locations)}


class Simulation:
    """N workers on one graph. Whoever drives it may call any method at any moment: each is one event."""

    def __init__(self, graph: Graph, peers: int, rng: Random) -> None:
        self.graph = graph
        self.rng = rng
        self.truth: Counter[tuple[Location, Time]] = Counter()  # invariant: no negative counts
        self.log: list[str] = []
        self._temper = rng.choice(TEMPERS)
        self._weather = rng.choice(WEATHERS)
        self._consequences: dict[tuple[Location, Time], oracle.Reached] = {}
        self._outgoing: dict[Source, list[Target]] = {}
        for source, target in graph.edges:
            self._outgoing.setdefault(source, []).append(target)
        self.workers = [Worker(number, self.make_tracker(peers)) for number in range(peers)]
        self.channels: dict[tuple[int, int], deque[ProgressBatch]] = {
            (a, b): deque() for a in range(peers) for b in range(peers)
        }
        self._give_initial_capabilities()
        self.check_safety(self.workers)

    def make_tracker(self, peers: int) -> Tracker:
        """What a worker starts with: the initial capabilities of all workers."""
        return make_tracker(self.graph, peers)

    def _give_initial_capabilities(self) -> None:
        for number, node in enumerate(self.graph.nodes):
            for port in (port for port, starts in enumerate(node.initial) if starts):
                minimum = tuple(domain.minimum for domain in node.outputs[port])
                time = minimum if len(minimum) > 1 else minimum[0]
                for worker in self.workers:
                    worker.capabilities.append(Capability(Source(number, port), time))
                    self.truth[Source(number, port), time] += 1

    # ------------------------------------------------------- what an operator may do; all within one step of a worker

    def count(self, worker: Worker, location: Location, time: Time, diff: int) -> None:
        """An event that changes a count: it is true at once, and said later."""
        self.truth[location, time] += diff
        assert self.truth[location, time] >= 0, "the simulation itself broke a rule"
        worker.outbox.pending.update((self.graph.index(location), time), diff)

    def send(self, worker: Worker, source: Source, time: Time, to: list[int]) -> None:
        """A batch of records on an output: one message for each target and each worker that gets some."""
        self.log.append(f"{worker.number} sends {source} {time} to {to}")
        for target in self._outgoing.get(source, ()):
            for number in to:
                self.count(worker, target, time, +1)
                self.workers[number].arrived.append(Message(target, time))

    def make(self, worker: Worker, source: Source, time: Time) -> Capability:
        """A capability retained, cloned or delayed."""
        self.log.append(f"{worker.number} makes {source} {time}")
        self.count(worker, source, time, +1)
        capability = Capability(source, time)
        worker.capabilities.append(capability)
        return capability

    def downgrade(self, worker: Worker, capability: Capability, time: Time) -> None:
        self.log.append(f"{worker.number} downgrades {capability} to {time}")
        self.count(worker, capability.source, capability.time, -1)
        self.count(worker, capability.source, time, +1)
        capability.time = time

    def drop(self, worker: Worker, capability: Capability) -> None:
        self.log.append(f"{worker.number} drops {capability}")
        worker.capabilities.remove(capability)
        self.count(worker, capability.source, capability.time, -1)

    def take(self, worker: Worker, message: Message) -> list[tuple[Source, Time]]:
        """Takes a message; returns the rights that it confers for the rest of this step."""
        self.log.append(f"{worker.number} takes {message}")
        worker.arrived.remove(message)
        self.count(worker, message.target, message.time, -1)
        rights = []
        for (i, o), path in self.graph.nodes[message.target.node].connections.items():
            time = oracle.through(path, message.time) if i == message.target.port else None
            if time is not None:
                rights.append((Source(message.target.node, o), time))
        return rights

    # ----------------------------------------------------------------------------------------------- random behaviour

    def step(self, worker: Worker) -> None:
        """One step of one worker: takes some messages and does some of what they and its capabilities allow."""
        rights: list[tuple[Source, Time]] = []
        for _ in range(min(len(worker.arrived), self.rng.randint(0, 3))):
            rights += self.take(worker, self.rng.choice(worker.arrived))
            self._use(worker, rights)
        self._use(worker, rights)
        for _ in range(self.rng.randint(0, 3)):
            if worker.capabilities:
                self._exercise(worker, self.rng.choice(worker.capabilities))
        self.check_safety(self.workers)

    def _use(self, worker: Worker, rights: list[tuple[Source, Time]]) -> None:
        """Sends and retains under the rights of messages being taken. Doing nothing is allowed too."""
        for source, time in rights:
            if self.rng.random() < 0.35:
                self.send(worker, source, later_time(self.rng, time), self._recipients())
            if self.rng.random() < 0.25:
                self.make(worker, source, later_time(self.rng, time))

    def _exercise(self, worker: Worker, capability: Capability) -> None:
        """One or two things that a held capability allows; dropping it right after sending is among them."""
        for _ in range(self.rng.randint(1, 2)):
            time = later_time(self.rng, capability.time)
            match self.rng.choices(ACTIONS, self._temper)[0]:
                case "send":
                    self.send(worker, capability.source, time, self._recipients())
                case "clone":
                    self.make(worker, capability.source, capability.time)
                case "delay":
                    self.make(worker, capability.source, time)
                case "downgrade":
                    self.downgrade(worker, capability, time)
                case "drop":
                    self.drop(worker, capability)
                    return

    def _recipients(self) -> list[int]:
        """One worker as a rule; a broadcast, or the parts of a split batch, now and then."""
        peers = range(len(self.workers))
        return list(peers) if self.rng.random() < 0.1 else [self.rng.choice(peers)]

    # --------------------------------------------------------------------------------------------------- the protocol

    def flush(self, worker: Worker) -> None:
        """Says everything that is pending, to all workers."""
        batch = worker.outbox.flush()
        if batch is not None:
            self.broadcast(batch)

    def broadcast(self, batch: ProgressBatch) -> None:
        self.log.append(f"{batch.sender} says {batch}")
        for worker in self.workers:
            self.channels[batch.sender, worker.number].append(batch)

    def deliver(self, worker: Worker, senders: list[int]) -> None:
        """Applies the next batch of each of these senders (one may be named twice), all in one propagation."""
        changes: list[Change] = []
        for sender in senders:
            if self.channels[sender, worker.number]:
                changes += worker.inbox.accept(self.channels[sender, worker.number].popleft())
        if changes:
            self.apply(worker, changes)

    def waiting(self, worker: Worker) -> list[int]:
        """The senders of which this worker has something to hear."""
        return [sender for sender in range(len(self.workers)) if self.channels[sender, worker.number]]

    def apply(self, worker: Worker, changes: list[Change]) -> None:
        self.log.append(f"{worker.number} hears {changes}")
        worker.tracker.propagate(changes)
        seen = worker.look()
        self._check_monotone(worker, seen)
        worker.view = seen
        self.check_safety([worker])

    # ------------------------------------------------------------------------------------------------------ judgement

    def check_safety(self, workers: list[Worker]) -> None:
        """Whatever could still happen lies at or after every view's frontier, at every location."""
        for pointstamp, count in self.truth.items():
            if count:
                for location, times in self._consequences_of(pointstamp):
                    for worker in workers:
                        self._check_not_ahead(worker, pointstamp, location, times)

    def _check_not_ahead(self, worker: Worker, pointstamp: Any, location: Location, times: set[Time]) -> None:
        frontier = worker.view[location]
        for time in times:
            if not any(oracle.before(t, time) for t in frontier):
                raise Unsafe(
                    f"{pointstamp} exists and could result in {time} at {self.graph.name(location)}, "
                    f"but worker {worker.number} sees the frontier {frontier}"
                )

    def _consequences_of(self, pointstamp: tuple[Location, Time]) -> Iterator[tuple[Location, set[Time]]]:
        known = self._consequences.get(pointstamp)
        if known is None:
            reached = oracle.reach(self.graph, [pointstamp])
            known = self._consequences[pointstamp] = {there: times for there, times in reached.items() if times}
        yield from known.items()

    def _check_monotone(self, worker: Worker, seen: dict[Location, tuple[Time, ...]]) -> None:
        for location, frontier in seen.items():
            for time in frontier:
                if not any(oracle.before(t, time) for t in worker.view[location]):
                    raise Unsafe(
                        f"worker {worker.number}: the frontier at {self.graph.name(location)} went backwards, "
                        f"from {worker.view[location]} to {frontier}"
                    )

    # --------------------------------------------------------------------------------------------------- a whole case

    def run(self, events: int) -> None:
        """Random events, then the end of everything."""
        for _ in range(events):
            worker = self.rng.choice(self.workers)
            match self.rng.choices(EVENTS, self._weather)[0]:
                case "step":
                    self.step(worker)
                case "flush":
                    self.flush(worker)
                case "deliver":
                    self._deliver_some(worker, self.rng.choice((1, 1, 1, 2, 4)))
        self.finish()
        self.check_liveness()

    def finish(self) -> None:
        """Drops, takes and delivers everything, in a random order."""
        while not self._finished():
            worker = self.rng.choice(self.workers)
            if worker.capabilities:
                self.drop(worker, self.rng.choice(worker.capabilities))
            if worker.arrived:
                self.take(worker, self.rng.choice(worker.arrived))
            self.check_safety(self.workers)
            if self.rng.random() < 0.5:
                self.flush(worker)
            self._deliver_some(self.rng.choice(self.workers), 1)

    def _deliver_some(self, worker: Worker, most: int) -> None:
        """Up to so many batches, of senders chosen at random, in one propagation."""
        senders = self.waiting(worker)
        if senders:
            self.deliver(worker, self.rng.choices(senders, k=most))

    def _finished(self) -> bool:
        return not any(self.channels.values()) and not any(
            worker.capabilities or worker.arrived or worker.outbox.pending for worker in self.workers
        )

    def check_liveness(self) -> None:
        """Nothing exists any more, and every worker knows."""
        for worker in self.workers:
            assert not any(worker.look().values()), worker.look()
            assert worker.tracker.complete
            assert worker.tracker.pointstamps() == {}


def simulation_of_seed(seed: int, variant: Callable[..., Simulation] = Simulation) -> Simulation:
    """A random graph with 1 to 4 workers, and the generator to go on with."""
    _, graph, rng = graph_of_seed(seed)
    return variant(graph, rng.randint(1, 4), rng)


def run_case(seed: int, variant: Callable[..., Simulation] = Simulation) -> None:
    """One random case; the same seed gives the same case. A failure carries the seed and the last events."""
    simulation = None
    try:
        simulation = simulation_of_seed(seed, variant)
        simulation.run(simulation.rng.randint(10, 60))
    except Exception as error:
        events = simulation.log[-20:] if simulation else ()
        error.add_note(f"replay with: tests.progress.simulation.run_case({seed})")
        error.add_note("\n".join(["the last events were:", *events]))
        raise


# ------------------------------------------------------------------------------- protocols that are broken on purpose


class HalvesApart(Simulation):
    """A batch is said in two halves, removals first: R2 and S2 are gone."""

    def broadcast(self, batch: ProgressBatch) -> None:
        for changes in (
            tuple(change for change in batch.changes if change[1] < 0),
            tuple(change for change in batch.changes if change[1] > 0),
        ):
            sequence = self._sequences[batch.sender]
            self._sequences[batch.sender] += 1
            super().broadcast(ProgressBatch(batch.sender, sequence, changes))

    def __init__(self, graph: Graph, peers: int, rng: Random) -> None:
        self._sequences: Counter[int] = Counter()
        super().__init__(graph, peers, rng)


class OutOfOrder(Simulation):
    """Batches of one sender overtake each other, and nobody looks at the sequence numbers: R1 is gone."""

    def deliver(self, worker: Worker, senders: list[int]) -> None:
        for sender in senders:
            channel = self.channels[sender, worker.number]
            if channel:
                channel.rotate(self.rng.randrange(len(channel)))
                self.apply(worker, list(channel.popleft().changes))


class OwnInitialCapabilities(Simulation):
    """A worker knows its own initial capabilities only, and tells the others of them."""

    def make_tracker(self, peers: int) -> Tracker:
        return make_tracker(self.graph, 1)

    def _give_initial_capabilities(self) -> None:
        super()._give_initial_capabilities()
        for worker in self.workers:
            changes = tuple(((self.graph.index(c.source), c.time), 1) for c in worker.capabilities)
            for other in self.workers:
                if changes and other is not worker:
                    self.channels[worker.number, other.number].append(ProgressBatch(worker.number, 0, changes))
            if changes:
                self._skip_first(worker)

    def _skip_first(self, worker: Worker) -> None:
        """The announcement was batch 0, also for the worker itself, which has counted it already."""
        worker.outbox.pending.update((0, None), 1)
        worker.outbox.flush()
        worker.inbox.accept(ProgressBatch(worker.number, 0, ()))


class FlushInMidStep(Simulation):
    """A worker may speak between taking a message and sending on account of it: S2 is gone."""

    def take(self, worker: Worker, message: Message) -> list[tuple[Source, Time]]:
        rights = super().take(worker, message)
        self.flush(worker)
        return rights


class DropsFirst(Simulation):
    """A capability's drop is said at once, before what was done under it: S3 is gone."""

    def drop(self, worker: Worker, capability: Capability) -> None:
        kept = worker.outbox.pending.drain()
        super().drop(worker, capability)
        self.flush(worker)
        for key, diff in kept:
            worker.outbox.pending.update(key, diff)


class CapabilitiesFromFrontiers(Simulation):
    """An operator makes a capability at a time that it sees in its input's frontier: there is no right to it."""

    def step(self, worker: Worker) -> None:
        super().step(worker)
        rights = [
            (Source(target.node, o), oracle.through(path, time))
            for target, frontier in worker.view.items()
            if isinstance(target, Target)
            for time in frontier
            for (i, o), path in self.graph.nodes[target.node].connections.items()
            if i == target.port
        ]
        if rights and self.rng.random() < 0.5:
            source, time = self.rng.choice(rights)
            if time is not None:
                self.make(worker, source, time)
                self.check_safety(self.workers)


BROKEN = (HalvesApart, OutOfOrder, OwnInitialCapabilities, FlushInMidStep, DropsFirst, CapabilitiesFromFrontiers)
