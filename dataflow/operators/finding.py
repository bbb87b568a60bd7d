"""The operator that finds the partitions of a source and deals them out: on worker 0, for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.members.barrier import Turnover
from dataflow.members.following import Follows
from dataflow.operators.partitions import Partitions, SourceError
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

D = TypeVar("D")


class Dealing:
    """Who reads which partition, as the finder has said, and who can be given more. On worker 0 it is the truth."""

    def __init__(self, timed: bool) -> None:
        self.readers: dict[str, int] = {}  # by partition
        self.may_read: list[int] = []  # workers; empty as long as none has been given a partition
        self._timed = timed

    def deal(self, found: list[str], members: tuple[int, ...]) -> list[tuple[str, int, list[int]]]:
        """Deals out in turn what was not known before: (partition, worker, all that can be given partitions)."""
        new = [partition for partition in found if partition not in self.readers]
        if not self._timed:
            self.may_read = list(members)
        elif not self.may_read:
            # One that names its times and has no partition would hold all others back: it is left out.
            self.may_read = list(members[: len(new)])
        for partition in new:
            self.readers[partition] = self.may_read[len(self.readers) % len(self.may_read)]
        return [(partition, self.readers[partition], self.may_read) for partition in new]


class _FollowingFinder(Follows):
    """The finder's part in a change: times mean nothing on its stream, and nobody is to wait for one before it."""

    def __init__(self, capability: Capability) -> None:
        self._capability = capability

    def install(self, proposal: Turnover, time: Time, handed: object) -> None:
        if self._capability.live and self._capability.time < time:
            self._capability.downgrade(time)


def find_partitions(
    scope: Scope, source: Partitions[D], dealing: Dealing, name: str
) -> Stream[tuple[str, int, list[int]]]:
    """A stream that says who reads which partition."""
    builder = OperatorBuilder(scope, f"{name}: partitions")
    builder.add_output(initial=True, entry=False)
    (dealt,) = builder.build(lambda context: _find(scope, context, source, dealing), keeps=Keeps.NOTHING)
    return dealt


def _find(scope: Scope, context: Context, source: Partitions[D], dealing: Dealing) -> Step:
    capability, output = context.capability(), context.outputs[0]
    pump = scope.dataflow.pump
    context.follow(_FollowingFinder(capability))

    async def find() -> None:
        await scope.dataflow.started.wait()
        while not context.dropped and scope.dataflow.built:
            found = await source.partitions()
            if isinstance(found, str) or not all(isinstance(partition, str) for partition in found):
                raise SourceError(f"partitions() of {source!r} must give a list of names, not {found!r}")
            await pump.changes.wait_decided()
            output.give(capability, dealing.deal(list(dict.fromkeys(found)), pump.roster.members))
            if not source.follow:
                break
            await context.clock.sleep_until(context.clock.now() + source.look_every)
        capability.drop()

    if context.worker == 0:
        context.spawn(find)
    else:
        capability.release()
    return lambda: None
