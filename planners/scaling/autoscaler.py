"""The DS2 autoscaler, interval by interval: whether to change the number of workers, and why. Pure.

It does not flap. It ignores `warm_up` intervals after the start and after each change, since rates are not yet what
they will be. It then needs `activation` intervals, and takes the median of what they ask for (the paper, section 4.2).
It shrinks only if the fewer workers would still have `hysteresis` of their target to spare. For `cool_down` intervals
after a change it does not shrink; to grow may be urgent. Every decision says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from planners.errors import BadRequest
from planners.scaling.need import WorkerNeed, workers_needed
from planners.scaling.work import WorkInterval


@dataclass(frozen=True, slots=True)
class ScaleSettings:
    """How the autoscaler decides. Numbers of intervals, but for the shares and `catch_up` (seconds)."""

    utilisation: float = 0.8  # the share of the time that workers should be busy
    minimum: int = 1
    maximum: int = 64
    warm_up: int = 1
    activation: int = 1
    cool_down: int = 3
    hysteresis: float = 0.1
    catch_up: float | None = None  # seconds in which a backlog is to be worked off; None: it is ignored

    def __post_init__(self) -> None:
        if not 0 < self.utilisation <= 1 or not 0 <= self.hysteresis < 1:
            raise BadRequest(
                f"utilisation is above 0 and at most 1, hysteresis from 0 to below 1: not {self.utilisation} and "
                f"{self.hysteresis}"
            )
        if not 1 <= self.minimum <= self.maximum:
            raise BadRequest(f"from {self.minimum} to {self.maximum} workers: the minimum is 1 or more, and not above")
        if self.warm_up < 0 or self.activation < 1 or self.cool_down < 0:
            raise BadRequest("warm_up and cool_down are 0 intervals or more, and activation is 1 or more")
        if self.catch_up is not None and not self.catch_up > 0:
            raise BadRequest(f"catch_up is a number of seconds, not {self.catch_up!r}")


@dataclass(frozen=True, slots=True)
class ScaleDecision:
    """What was decided after an interval, and why."""

    interval: int
    workers: int  # as they are
    wanted: int  # as they should be
    reason: str
    need: WorkerNeed | None = None  # of this interval alone

    @property
    def acts(self) -> bool:
        """Whether the number of workers is to change."""
        return self.wanted != self.workers

    def __str__(self) -> str:
        what = f"scale from {self.workers} to {self.wanted}" if self.acts else f"stay at {self.workers}"
        return f"interval {self.interval}: {what}: {self.reason}"


@dataclass
class Autoscaler:
    """Decides. Its memory: since when the number of workers is what it is, and what intervals since then ask for."""

    settings: ScaleSettings = field(default_factory=ScaleSettings)
    _interval: int = field(default=-1, init=False)
    _workers: int | None = field(default=None, init=False)
    _since: int = field(default=0, init=False)  # intervals with these workers
    _changed: bool = field(default=False, init=False)  # whether there were others before
    _asked: list[float] = field(default_factory=list, init=False)  # exact needs; invariant: at most `activation`

    def decide(self, seen: WorkInterval) -> ScaleDecision:
        """The decision after an interval, in which the number of workers did not change."""
        self._interval += 1
        if seen.workers != self._workers:
            self._changed = self._workers is not None
            self._workers, self._since, self._asked = seen.workers, 0, []
        self._since += 1
        of = self.settings
        if self._since <= of.warm_up:
            return self._stay(f"warming up, interval {self._since} of {of.warm_up}")
        need = workers_needed(seen, of.catch_up)
        self._asked = [*self._asked, need.exact][-of.activation :]
        if len(self._asked) < of.activation:
            return self._stay(f"{_asks(need)}; {len(self._asked)} of {of.activation} intervals", need)
        return self._weigh(WorkerNeed(median(self._asked), need.shares, need.rates, need.true_rates))

    def _weigh(self, need: WorkerNeed) -> ScaleDecision:
        of, here = self.settings, self._workers
        assert here is not None
        wanted = min(max(need.workers(of.utilisation), of.minimum), of.maximum)
        if wanted > here:
            return self._change(wanted, need)
        if wanted < here:
            slack = max(need.workers(of.utilisation * (1 - of.hysteresis)), of.minimum)
            if slack >= here:
                return self._stay(f"{_asks(need)}: {wanted} workers would do, with too little to spare", need)
            if self._changed and self._since <= of.cool_down:
                return self._stay(f"{_asks(need)}: {wanted} would do, but the last change was just now", need)
            return self._change(min(slack, of.maximum), need)
        bound = need.workers(of.utilisation)
        if bound > of.maximum:
            return self._stay(f"{_asks(need)}: {bound} workers are needed, and {of.maximum} is the most", need)
        return self._stay(_asks(need), need)

    def _change(self, wanted: int, need: WorkerNeed) -> ScaleDecision:
        assert self._workers is not None
        bound = need.workers(self.settings.utilisation)
        most = f" ({bound} would be needed)" if bound > wanted else ""
        busiest = f"{need.heaviest} needs most of it, {need.shares[need.heaviest]:.2f}" if need.shares else "no work"
        reason = f"{_asks(need)} at {self.settings.utilisation:.0%} busy{most}; {busiest}"
        return ScaleDecision(self._interval, self._workers, wanted, reason, need)

    def _stay(self, reason: str, need: WorkerNeed | None = None) -> ScaleDecision:
        assert self._workers is not None
        return ScaleDecision(self._interval, self._workers, self._workers, reason, need)


def _asks(need: WorkerNeed) -> str:
    return f"useful work for {need.exact:.2f} workers"
