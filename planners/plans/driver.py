"""The closed loop around a controller: samples of the streams in, replans out.

What it asks of a controller is a Protocol, which `megaphone.Controller` satisfies. `Replan`, what is said to it, is
imported when there is something to say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from planners.errors import BadRequest
from planners.plans.decision import ReplanDecision, ReplanLoop
from planners.plans.sampling import Item, JoinSample, KeyFunction, PairPredicate, estimate, merged
from planners.showing import ShownLoop

if TYPE_CHECKING:
    from megaphone.control.replans import Replan

log = logging.getLogger("planners.plans")
Strategy_contra = TypeVar("Strategy_contra", contravariant=True)
Strategy = TypeVar("Strategy")  # the controller's own: only passed on
OF_JOINS = ("moving-state", "parallel-track", "hybmig")  # the methods that change a join's order


class Replannable(Protocol[Strategy_contra]):
    """An operator whose plan can change: what the driver needs of a controller."""

    @property
    def plans(self) -> list[str]:
        """By bin, the plan that it has or is on its way to."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a migration is under way."""
        ...

    def replan(self, replan: Replan, strategy: Strategy_contra | None = ...) -> None: ...


class PlanDriver(ShownLoop, Generic[Item, Strategy]):
    """Between a loop and a controller, on the worker that issues replans: `hear` the sample of each interval (see
    `watching`), and `step` now and then. While the controller is busy samples are heard, and nothing is decided.
    `dry_run` decides and logs, and changes nothing.
    """

    def __init__(
        self,
        controller: Replannable[Strategy],
        window: float,
        loop: ReplanLoop | None = None,
        *,
        key_of: KeyFunction[Item] | None = None,
        where: Mapping[tuple[str, str], PairPredicate[Item]] | None = None,
        strategy: Strategy | None = None,
        dry_run: bool = False,
        tell: Callable[[ReplanDecision], None] | None = None,
    ) -> None:
        if loop is not None and loop.method not in OF_JOINS:
            raise BadRequest(f"{loop.method} is for opaque plans; join orders change by {', '.join(OF_JOINS)}")
        super().__init__("which plan a join has", controller, dry_run)
        self._controller = controller
        self._window = window
        self._loop = loop or ReplanLoop()
        self._key_of = key_of
        self._where = where or {}
        self._strategy = strategy
        self._tell = tell
        self._heard: list[JoinSample[Item]] = []  # of which nothing was decided
        self.decisions: list[ReplanDecision] = []

    def hear(self, sample: JoinSample[Item]) -> None:
        """The sample of an interval, of all workers."""
        self._heard.append(sample)

    def step(self) -> ReplanDecision | None:
        """Decides if an interval is over and no migration under way, and has the controller begin one. Intervals that
        were heard together are judged as one."""
        if not self._heard or self._controller.busy:
            return None
        samples, self._heard = self._heard, []
        decision = self._decide([sample for sample in samples if sample.span > 0])
        self.decisions.append(decision)
        self.show(decision)
        log.info("%s%s", "(dry run) " if self.dry_run else "", decision)
        if self._tell is not None:
            self._tell(decision)
        if decision.plan is not None and not self.dry_run:
            from megaphone.control.replans import Replan

            self._controller.replan(Replan(decision.plan, self._loop.method), self._strategy)
        return decision

    def _decide(self, samples: list[JoinSample[Item]]) -> ReplanDecision:
        plans = set(self._controller.plans)
        if len(plans) > 1:
            return self._loop.hold(f"bins have {len(plans)} different plans: somebody else is changing them")
        seen = merged(samples) if samples else None
        silent = [] if seen is None else [name for name, records in seen.records.items() if not records]
        if seen is None or silent:
            return self._loop.hold(f"nothing came in {', '.join(silent) or 'any stream'}")
        statistics = estimate(seen, self._window, self._key_of, self._where)
        return self._loop.decide(plans.pop(), statistics, seen.end)
