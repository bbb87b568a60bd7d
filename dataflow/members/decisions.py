"""What a change says of one dataflow, in plain data that travels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dataflow.errors import ProtocolError
from dataflow.members.plain import fields
from dataflow.progress.tracker import Change
from dataflow.time.order import Time


class NotYet(Exception):
    """A change cannot be made at this moment: it is tried again."""


@dataclass(frozen=True, slots=True)
class Mint:
    """A right for a worker: a capability at an output, or a message at an input (`target`), at a time."""

    worker: int
    node: int
    port: int
    time: Time
    target: bool = False


@dataclass(slots=True)
class Ruling:
    """One dataflow's part in a change: it takes effect at `time`. By operator and worker, what is handed over."""

    time: Time
    mints: list[Mint] = field(default_factory=list)
    handed: dict[int, dict[int, object]] = field(default_factory=dict)

    def start_of(self, worker: int, node: int, port: int) -> Time:
        """The time at which an output of a joiner starts; None if nobody can send there any more."""
        wanted = (worker, node, port, False)
        return next((m.time for m in self.mints if (m.worker, m.node, m.port, m.target) == wanted), None)

    def plain(self) -> list[object]:
        """For the wire."""
        mints = [[mint.worker, mint.node, mint.port, mint.time, mint.target] for mint in self.mints]
        handed = [[node, worker, what] for node, by in self.handed.items() for worker, what in by.items()]
        return [self.time, mints, handed]

    @classmethod
    def read(cls, plain: object) -> Ruling:
        """What `plain` gave; ProtocolError if it did not."""
        try:
            time, mints, handed = fields(plain, 3)
            decision = cls(time, [Mint(*mint) for mint in mints])
            for node, worker, what in handed:
                decision.handed.setdefault(node, {})[worker] = what
        except (TypeError, ValueError) as error:
            raise ProtocolError(f"a decision that is none: {error}") from None
        return decision


@dataclass(slots=True)
class Welcome:
    """What a joiner is told of a dataflow: how it looks, its counts, the next batch of each member, its memberships."""

    name: str
    description: tuple[str, ...]
    counts: Sequence[Change]
    sequences: Mapping[int, int]
    memberships: Sequence[object]
    decision: Ruling

    def plain(self) -> list[object]:
        """For the wire."""
        counts = [[location, time, count] for (location, time), count in self.counts]
        sequences = [list(pair) for pair in self.sequences.items()]
        return [self.name, list(self.description), counts, sequences, list(self.memberships), self.decision.plain()]

    @classmethod
    def read(cls, plain: object) -> Welcome:
        """What `plain` gave; ProtocolError if it did not."""
        try:
            name, description, counts, sequences, memberships, decision = fields(plain, 6)
            changes = [((location, time), count) for location, time, count in counts]
            expected = dict(sequences)
            return cls(name, tuple(description), changes, expected, memberships, Ruling.read(decision))
        except (TypeError, ValueError) as error:
            raise ProtocolError(f"a beginning that is none: {error}") from None
