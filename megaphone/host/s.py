"""S: holds bins and applies records to them in the order of time (section 3.4).

S has an input for the records of each input of F, and one for migrating state. It installs pieces of bins as they
arrive; a bin is there when all of its pieces have. It applies the records of a time, those that arrived and those that
were put off until then, once no input can deliver that time any more: that is `dataflow.state.host`, the same for rows
and columns, and for operators that do not migrate. S adds the state that arrives, and statistics; and where bins have
plans, the work that these have for the background.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from dataflow.columns import Columns
from dataflow.lowlevel import Capability, Context, InputPort, MessageCapability
from dataflow.state.host import Host
from dataflow.state.pieces import Piece, unpack
from dataflow.state.store import B, Key, Numbers, Store
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from megaphone.keys.returns import Returning
from megaphone.load.statistics import Counted, Heaviest, Reporter
from megaphone.plans.door import REPLAN, PlanStore
from megaphone.router.routing import Shared

BUDGET = 1 << 10  # pairs that S looks at in one step in the background, unless the operator is told otherwise

C_contra = TypeVar("C_contra", contravariant=True)


class HeavyHitters(Protocol[C_contra]):
    """Finds the heavy keys of what S applies."""

    def watch(self, batches: Sequence[Sequence[C_contra]]) -> None:
        """Batches, by input, are about to be applied."""

    def take(self) -> Heaviest:
        """The heavy keys since this was last asked, their records, and by how much these may be too many."""

    def names(self, keys: Sequence[Key] | Numbers) -> Sequence[Key]:
        """Heavy keys as people write them; nothing if that is how they are."""


class S(Generic[B]):
    """The step of S, and the observer of its host. `ports`: how many inputs have records. `budget`: of the background,
    for each step of an idle worker."""

    def __init__(
        self,
        context: Context,
        shared: Shared[B],
        ports: int,
        interval: float | Duration | None,
        make_heavy: Callable[[], HeavyHitters[B]],
        budget: int = BUDGET,
    ) -> None:
        self._store: Store[B] = shared.store
        self._arrivals: InputPort = context.inputs[ports]
        self._host = Host(context, self._store, context.inputs[:ports], self, shared.kept)
        self._gate = shared.gate
        self._outside: list[tuple[Capability, Columns]] = []  # state that arrived for times that the gate keeps out
        self._returning: Returning[Piece] = Returning(self._arrivals)  # keys that go back into their bins
        self._heavy = None if interval is None else make_heavy()
        self._reporter = Reporter(
            context, context.outputs[1], self._store.bins, interval, self._counted, self._tell_heavy, self._names
        )
        self._plans = self._store if isinstance(self._store, PlanStore) else None
        self._budget = budget
        self._context = context
        self._is_idle = True
        self._kept = shared.kept
        self._apart = 0  # records of keys that live apart, as far as the reporter knows
        shared.state_changed = context.activate

    def step(self) -> None:
        """State first, then what is complete, in the order of time."""
        if self._outside:
            self._let_in()
        if self._arrivals.queue:
            self._install_arrivals()
        self._install_returning()
        self._is_idle = True
        self._host.step()
        if self._plans is not None and self._plans.next_work is not None:
            self._work(self._plans)
        self._reporter.end()

    def _work(self, plans: PlanStore[B]) -> None:
        """Does some work for the background if there is nothing else to do, and comes back for the rest; unless nothing
        can come any more that it would be for."""
        if self._context.is_idle and self._is_idle:
            bin = plans.next_work
            if self._kept is not None and bin is not None:
                self._kept.touch([bin])  # what is frozen for a snapshot is copied before it changes
            plans.work(self._budget)
        if plans.next_work is not None and not all(port.done for port in self._context.inputs):
            self._context.activate_when_idle()

    def _install_arrivals(self) -> None:
        """A key that goes back into its bin waits: the bin may be on its way at the same time."""
        message: MessageCapability
        batch: Columns
        for message, batch in self._arrivals:
            if self._gate is None or self._gate.opens(message.time):
                self._install(message, batch)
            else:
                self._outside.append((message.retain(), batch))

    def _let_in(self) -> None:
        """The snapshot before some state has what it needs: that state may come in."""
        waiting, self._outside = self._outside, []
        for capability, batch in waiting:
            if self._gate is None or self._gate.opens(capability.time):
                self._install(capability, batch)
                capability.drop()
            else:
                self._outside.append((capability, batch))

    def _install(self, message: MessageCapability | Capability, batch: Columns) -> None:
        for piece in unpack(batch["words"]):
            if piece.returns:
                self._returning.add(message, piece)
                continue
            if piece.part == REPLAN:
                self._save_what_is_frozen()
            self._store.put(piece)
        self._host.hold_from(message)

    def _install_returning(self) -> None:
        for capability, pieces in self._returning.due():
            self._save_what_is_frozen()
            for piece in pieces:
                self._store.put(piece)
            self._host.hold_from(capability)

    def _save_what_is_frozen(self) -> None:
        """A bin that is here is about to change, though not by records: what a snapshot wants of it is copied first. A
        bin that arrives as a whole is in no snapshot that is being written here."""
        if self._kept is not None:
            self._kept.before_changing()

    # As the observer of the host

    def saw(self, message: MessageCapability) -> None:
        """A message of records is being taken."""
        self._reporter.saw(message)

    def applying(self, batches: Sequence[Sequence[B]]) -> None:
        """Batches are about to be applied."""
        if self._heavy is not None:
            self._heavy.watch(batches)

    def applied(self, since: Time, until: Time, nanoseconds: int) -> None:
        """Records of these times have been applied."""
        self._is_idle = False
        apart, self._apart = self._store.apart_records - self._apart, self._store.apart_records
        self._reporter.spent(nanoseconds, apart)
        least = self._store.least_pending
        if least is None or least > until:  # else what was post-dated to it comes next
            known = type(until) is int
            self._reporter.report(until if known else None, since if known else None)

    def _tell_heavy(self) -> Heaviest | None:
        return None if self._heavy is None else self._heavy.take()

    def _names(self, keys: Sequence[Key] | Numbers) -> Sequence[Key]:
        return () if self._heavy is None else self._heavy.names(keys)

    def _counted(self) -> Counted:
        return self._store.records, self._store.sizes
