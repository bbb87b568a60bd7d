"""The closed loop: statistics of an interval in, a decision out; and the thin driver between it and a controller.

The loop does not flap. It acts when a load has been above the planner's tolerance for `patience` intervals running. It
then asks for a tighter balance, by the share `hysteresis` of the tolerance: a plan that only just met the tolerance
would be upset by the next small change. A migration must lower the greatest load by at least `gain` of the mean. For
`cool_down` intervals after a migration the loop does nothing. It ignores intervals that began before a migration was
complete. Every decision says why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from planners.errors import NothingBalanced
from planners.loop.observation import Floats, Observation, Proposal, combine, spread
from planners.loop.planning import LoopPlanner, by_keys
from planners.loop.shaping import BinShape, Shaping, coarsened
from planners.loop.steering import Key, LoadReport, Steerable, WorkersAskedFor, as_list, as_objects
from planners.showing import ShownLoop

log = logging.getLogger("planners.loop")
SILENCE = 3  # intervals: a worker that stays silent while another reports for so long has nothing to report
Reports: TypeAlias = Mapping[int, LoadReport]  # by worker
Strategy = TypeVar("Strategy")  # the controller's own: the loop only passes it on


@dataclass(frozen=True, eq=False)
class Decision:
    """What was decided for an interval, and why. `proposal` is set if something is to move, `ask` if other workers are
    to be asked for. A proposal numbers workers from 0 on, without gaps, in the order of those that are there."""

    interval: int
    reason: str
    spread: float  # the greatest load over the mean, less one: as it was
    proposal: Proposal | None = None
    ask: int | None = None  # how many workers there shall be

    @property
    def acts(self) -> bool:
        """Whether anything is to move, or workers are to come or go."""
        return self.proposal is not None or self.ask is not None

    def __str__(self) -> str:
        what = f"scale to {self.ask}" if self.ask is not None else "move" if self.acts else "stay"
        return f"interval {self.interval}: {what}: {self.reason}"


@dataclass
class Loop:
    """Decides, interval by interval. Pure: its memory is how long something has been wrong, and when it last acted."""

    planner: LoopPlanner = field(default_factory=by_keys)
    hysteresis: float = 0.75  # of the planner's tolerance: above 0.08 is wrong, and then 0.02 is aimed at
    patience: int = 2
    gain: float = 0.02  # of the mean load
    cool_down: int = 1
    most: int | None = None  # so many workers may be asked for; None: the planner chooses among those that are there
    _interval: int = field(default=-1, init=False)
    _wrong: int = field(default=0, init=False)  # for how many intervals running
    _acted: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.most is not None and (self.most < 1 or self.planner.wanted is None):
            raise ValueError(
                f"`most` is how many workers may be asked for, by a planner that knows how many it wants "
                f"(by_intervals): not {self.most} with {self.planner.name}"
            )
        if self.patience < 1 or self.cool_down < 0 or not 0 <= self.hysteresis <= 1 or not self.gain >= 0:
            raise ValueError(
                f"patience is 1 or more, hysteresis from 0 to 1, the others 0 or more: not patience {self.patience}, "
                f"cool-down {self.cool_down}, hysteresis {self.hysteresis}, gain {self.gain}"
            )

    def decide(self, seen: Observation) -> Decision:
        """The decision for the next interval."""
        self._interval += 1
        loads = seen.loads(seen.places)
        used = len(set(seen.places.tolist()) | set(seen.pinned.values()))
        total = float(loads.sum())
        if not total:
            return self._stay("nothing came", loads, seen.workers)
        if self.most is not None:
            used = seen.workers  # whoever is there is paid for
        wanted = seen.workers if self.planner.wanted is None else min(
            self.most or seen.workers, self.planner.wanted(total, used)
        )  # fmt: skip
        across = seen.workers if self.planner.wanted is None else used
        over = spread(loads, across)
        limit = self.planner.tolerance
        scaling = self.planner.wanted is not None and wanted != used
        self._wrong = self._wrong + 1 if scaling or over > limit else 0
        if not self._wrong:
            return self._stay(f"the greatest load is {over:.1%} above the mean, within {limit:.1%}", loads, across)
        what = f"{used} workers are used, and {wanted} wanted" if scaling else f"the greatest load is {over:.1%} above"
        if self._acted is not None and self._interval - self._acted <= self.cool_down:
            since = self._interval - self._acted
            return self._stay(f"{what}, but the last migration was {since} intervals ago", loads, across)
        if self._wrong < self.patience:
            return self._stay(f"{what}, for {self._wrong} of {self.patience} intervals", loads, across)
        if scaling and self.most is not None:
            self._acted, self._wrong = self._interval, 0
            return Decision(self._interval, what, spread(loads, across), ask=wanted)
        return self._weigh(seen, loads, across, what, scaling)

    def _weigh(self, seen: Observation, loads: Floats, across: int, what: str, scaling: bool) -> Decision:
        try:
            proposal = self.planner.plan(seen, self.planner.tolerance * (1 - self.hysteresis))
        except NothingBalanced as why:  # an answer like any other: the next interval may have a better one
            return self._stay(f"{what}, and {self.planner.name} has no plan: {why}", loads, across)
        by = proposal.by or self.planner.name
        mean = float(loads.sum()) / across
        gain = float(loads.max() - proposal.loads.max()) / mean
        if not proposal.pins and (proposal.to == seen.places).all():
            return self._stay(f"{what}, and {by} knows nothing better", loads, across)
        if not scaling and gain < self.gain:
            return self._stay(f"{what}, but a migration would gain {gain:.1%} only", loads, across)
        self._acted, self._wrong = self._interval, 0
        about = "about " if proposal.pins else ""
        gains = f"to gain {gain:.1%}" if gain >= 0 else f"for a greatest load {-gain:.1%} of the mean higher"
        reason = f"{what}: {by} moves {proposal.note}, {about}{proposal.moved:,.0f} bytes, {gains}"
        return Decision(self._interval, reason, spread(loads, across), proposal)

    def _stay(self, reason: str, loads: Floats, across: int) -> Decision:
        return Decision(self._interval, reason, spread(loads, across))


class Driver(ShownLoop, Generic[Strategy]):
    """Between a loop and a controller, on the worker that issues migrations: call `step` now and then.

    An interval is over when every worker that holds state has reported. The first interval is over when every worker
    with a bin has reported, or some worker has reported twice (then the others have nothing to report). The driver does
    not wait for a worker that receives nothing any more. It ignores reports of what came before the last migration was
    complete. It gathers intervals until they have `least` records together: what a few hundred records say of bins and
    keys is mostly chance. `cost`: "records", or "nanoseconds" of processing. `dry_run` decides and logs, and moves
    nothing.

    `scale` is for a loop that may ask for workers (`Loop.most`): `worker.scale`, with a placement that its planner can
    go on from. Until they have come or gone, the driver decides nothing.

    `shaping`: which bins there should be; planners see the bins that there are then. None: they stay as they are.
    Unless it is given, bins are shaped where some can be split: where the operator was built without a number of them.
    """

    def __init__(
        self,
        controller: Steerable[Strategy],
        loop: Loop | None = None,
        *,
        strategy: Strategy | None = None,
        cost: str = "records",
        least: int = 2_000,
        shaping: Shaping | Literal["auto"] | None = "auto",
        dry_run: bool = False,
        tell: Callable[[Decision], None] | None = None,
        scale: Callable[[int], WorkersAskedFor] | None = None,
    ) -> None:
        if cost not in ("records", "nanoseconds"):
            raise ValueError(f"cost is 'records' or 'nanoseconds', not {cost!r}")
        self._loop = loop or Loop()
        if (self._loop.most is None) != (scale is None):
            raise ValueError("a loop asks for workers if it has both: Loop(most=...) and Driver(scale=worker.scale)")
        self._scale = scale
        self._change: WorkersAskedFor | None = None  # that was asked for
        super().__init__(f"where bins are ({self._loop.planner.name})", controller, dry_run)
        self._controller = controller
        self._strategy = strategy
        self._cost = cost
        self._least = least
        coarse = bool((controller.counts > 1).any())
        self._shaping = (Shaping() if coarse else None) if shaping == "auto" else shaping
        self.shapes: list[BinShape] = []  # what was split and merged
        self._members = tuple(controller.members)  # as of the last step
        self._gathered: list[Observation] = []  # intervals that are not decided on; invariant: equal places and pins
        self._records = 0  # that they have together
        self._tell = tell
        self._heard: dict[int, int] = {}  # by worker, the last report that was used
        self._first: dict[int, int] = {}  # by worker, the first one that was not
        self.decisions: list[Decision] = []
        if self._loop.planner.prepare is not None:
            self._loop.planner.prepare()  # now rather than under load: it takes seconds if nobody has planned before

    def step(self) -> Decision | None:
        """Decides if an interval is over and no migration under way, and has the controller begin one."""
        if self._members_change() or self._controller.busy:
            self._first.clear()
            return None
        reports = self._interval()
        if reports is None or not self._is_placed():
            return None
        self._gather(observe(self._controller, self._cost, reports), reports)
        if self._records < self._least:
            return None
        seen, counts = combine(self._gathered), self._controller.counts
        shape = BinShape(counts, [], []) if self._shaping is None else self._shaping.decide(seen, counts)
        decision = self._loop.decide(coarsened(seen, shape.counts))
        self._gathered, self._records = [], 0
        self._note(decision, shape)
        if not self.dry_run:
            self._act(decision, shape)
        return decision

    def _members_change(self) -> bool:
        """Whether workers that were asked for come or go."""
        before, self._members = self._members, tuple(self._controller.members)
        if before != self._members:
            self._gathered, self._records = [], 0
        if self._change is not None and self._change.done:
            self._change = None
        return self._change is not None

    def _is_placed(self) -> bool:
        """Whether no bin and no key is at a worker that is leaving: it will be elsewhere soon."""
        bins = np.isin(self._controller.configuration, self._members)
        return bool(bins.all()) and {*self._controller.pinned.values()} <= {*self._members}

    def _act(self, decision: Decision, shape: BinShape) -> None:
        if decision.ask is not None:
            assert self._scale is not None, "a loop without it asks for nobody"
            self._change = self._scale(decision.ask)
        elif decision.proposal is not None:
            workers = np.array(self._members)
            to = np.repeat(workers[decision.proposal.to], shape.counts).tolist()
            given = decision.proposal.pins.items()
            pins = {key: None if rank is None else self._members[rank] for key, rank in given}
            self._controller.migrate(to, self._strategy, pins=pins, splits=shape.splits, merges=shape.merges)
        elif shape:
            self._controller.reshape(shape.splits, shape.merges)

    def _note(self, decision: Decision, shape: BinShape) -> None:
        if shape:
            self.shapes.append(shape)
            log.info("%s%s", "(dry run) " if self.dry_run else "", shape)
        self.decisions.append(decision)
        self.show(decision)
        log.info("%s%s", "(dry run) " if self.dry_run else "", decision)
        if self._tell is not None:
            self._tell(decision)

    def _gather(self, seen: Observation, reports: Reports) -> None:
        earlier = self._gathered[-1] if self._gathered else seen
        if (earlier.places != seen.places).any() or earlier.pinned != seen.pinned:
            self._gathered, self._records = [], 0
        self._gathered.append(seen)
        self._records += sum(int(load.records.sum()) + load.elsewhere + load.apart for load in reports.values())

    def _interval(self) -> Reports | None:
        """The reports of an interval, if it is over."""
        statistics = self._controller.statistics
        places = np.array(self._controller.configuration)
        owners = set(places[statistics.bytes > 0].tolist()) | set(self._controller.pinned.values())
        fresh = {worker: load for worker, load in statistics.heavy.items() if self._is_fresh(load)}
        if all(load.interval == 0 for load in fresh.values()):
            owners |= set(places.tolist())  # a worker that has not sent its first report may have most of the load
        news = {worker: load for worker, load in fresh.items() if load.interval > self._heard.get(worker, -1)}
        if not owners or not (owners <= news.keys() or self._others_have_nothing(news)):
            return None
        self._heard |= {worker: load.interval for worker, load in news.items()}
        self._first.clear()
        return news

    def _is_fresh(self, load: LoadReport) -> bool:
        """Whether all records of a report came after the last migration was complete."""
        settled = self._controller.settled
        return settled is None or load.until is None or load.until - load.span + 1 >= settled

    def _others_have_nothing(self, news: Reports) -> bool:
        """Whether the workers that do not report have nothing to report.

        That is so if another worker has reported for several intervals, and everything up to the end of its last one is
        done on all workers. (If a silent worker were only slow, not everything would be done.)
        """
        for worker, load in news.items():
            several = load.interval - self._first.setdefault(worker, load.interval) >= SILENCE
            if several and load.until is not None and self._controller.passed(load.until):
                return True
        return False


def observe(controller: Steerable[Strategy], cost: str = "records", reports: Reports | None = None) -> Observation:
    """What these reports (unless given, the last ones of a controller's statistics) say.

    Workers are numbered from 0 on, without gaps, in the order of those that are there. Loads are per unit of the
    dataflow's time, because workers' intervals are not equally long. A worker that has not reported has no load.
    """
    known = controller.statistics
    ranks = {worker: rank for rank, worker in enumerate(controller.members)}
    given = known.heavy if reports is None else reports
    told = {ranks[worker]: load for worker, load in given.items() if worker in ranks}
    places = np.searchsorted(np.array(controller.members), np.array(controller.configuration)).astype(np.int64)
    pinned = {key: ranks[worker] for key, worker in controller.pinned.items()}
    per_span = np.zeros(len(ranks))
    for worker, load in told.items():
        per_span[worker] = 1.0 / (load.span or load.seconds or 1.0)
    amounts = (known.nanoseconds if cost == "nanoseconds" else known.records) * per_span[places]
    found: list[tuple[Key, int, float]] = []
    for worker, load in told.items() if controller.pins_keys else ():
        scale = (load.per_record if cost == "nanoseconds" else 1.0) * per_span[worker]
        counts = zip(as_list(load.keys), load.key_records.tolist(), strict=True)
        found += ((key, worker, count * scale) for key, count in counts)
    bins = np.asarray(controller.bins_of([key for key, *_ in found]) if found else (), np.int64)
    homes = places[bins].tolist() if found else []
    here = [pinned.get(key, home) == worker for (key, worker, _), home in zip(found, homes, strict=True)]
    keys = as_objects([key for (key, *_), is_here in zip(found, here, strict=True) if is_here])
    costs = np.array([amount for (*_, amount), is_here in zip(found, here, strict=True) if is_here], float)
    state = known.bytes.astype(float)
    return Observation(len(ranks), places, amounts, state, keys, costs, bins[np.array(here, bool)], pinned)
