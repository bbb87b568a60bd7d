"""What a dataflow has to do with snapshots: whom it asks, and who takes part."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataflow.build.cuts import Gate, Participant
    from dataflow.build.scope import Scope
    from dataflow.recovery.keeper import Keeper
    from dataflow.run.pump import Pump


class TakesSnapshots:
    """A dataflow as far as it takes snapshots, if its run has recovery. (A part of `Dataflow`.)"""

    pump: Pump
    keeper: Keeper | None

    def recover(self, scope: Scope) -> None:
        """Has snapshots taken of what will be built in a scope, and goes on from one, if the run has recovery."""
        if self.pump.recovery is not None:
            from dataflow.recovery.keeper import make_keeper  # which builds operators

            make_keeper(scope, self.pump.recovery)

    def enrol(self, participant: Participant, activate: Callable[[], None]) -> Gate | None:
        """Has somebody take part in snapshots; None if there are none. `activate` is called when its gate has moved."""
        return None if self.keeper is None else self.keeper.enrol(participant, activate)

    def participant_name(self, name: str) -> str:
        """A name for a participant whose own is not known to be the only one: that, or with a number."""
        if self.keeper is None or name not in self.keeper.participants:
            return name
        names = (f"{name} {number}" for number in itertools.count(2))
        return next(each for each in names if each not in self.keeper.participants)
