"""How main, on any worker, asks for other workers, and learns who is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataflow.members.following import CannotScale
from dataflow.members.plain import fields
from dataflow.members.requests import Members, Placement, ScaleChange
from dataflow.run.signal import Signal

if TYPE_CHECKING:
    from dataflow.members.changing import Changing
    from dataflow.run.pump import Pump


class Asking:
    """One worker's requests. The leader carries them out."""

    def __init__(self, changes: Changing, pump: Pump) -> None:
        self._changes = changes
        self._pump = pump
        self._asked: list[ScaleChange] = []

    def scale(
        self, target: int | tuple[int, ...], placement: Placement | None, strategy: object, within: int | None
    ) -> ScaleChange:
        """Asks for so many workers, or for some to leave."""
        if self._changes.scaling is not None:
            return self._changes.scaling.ask(target, placement, strategy, within)
        if placement is not None or strategy is not None:
            raise CannotScale(
                f"only worker {self._pump.roster.leader} moves state: ask it with placement= and strategy= there, and "
                "here, if at all, without"
            )
        change = ScaleChange(target)
        self._asked.append(change)
        wanted = list(target) if isinstance(target, tuple) else target
        self._changes.say(self._pump.roster.leader, "scale", [wanted, within, len(self._asked) - 1])
        return change

    def heard(self, said: object) -> None:
        """The leader tells how far a request has come."""
        number, state, time, error, progress, seconds, first, pause = fields(said, 8)
        change = self._asked[number]
        change.time, change.progress, change.seconds = time, progress, seconds
        change.first_record, change.pause = first, pause
        change.moved(state, error)

    def members(self) -> Watching:
        """Who takes part: now, and after each change."""
        return Watching(self, self._changes.on_change)

    def now(self) -> Members:
        """Who takes part."""
        times = self._changes.times
        return Members(self._pump.roster.members, times[min(times)] if times else None)


class Watching:
    """Whoever takes part, now and after each change, as an asynchronous iterator. (A generator would want closing.)"""

    def __init__(self, asking: Asking, on_change: list[Callable[[], None]]) -> None:
        self._asking = asking
        self._told: Members | None = None
        self._signal = Signal()
        on_change.append(self._signal.set)

    def __aiter__(self) -> Watching:
        return self

    async def __anext__(self) -> Members:
        while self._asking.now() == self._told:
            await self._signal.wait()
        self._told = self._asking.now()
        return self._told
