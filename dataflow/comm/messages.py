"""What workers say to each other. Every message names its sender; most name a dataflow.

Nobody changes a message. They are not frozen because a frozen dataclass takes three times as long to make, and two or
more are made per epoch and peer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from dataflow.channels.pact import Batch
from dataflow.comm.flow import ON_ITS_WAY
from dataflow.progress.broadcast import ProgressBatch
from dataflow.time.order import Time


@dataclass(slots=True)
class Hello:
    """The sender has built a dataflow, and this is what it looks like (see Graph.describe)."""

    sender: int
    dataflow: int
    name: str
    description: tuple[str, ...]


@dataclass(slots=True)
class Progress:
    """The sender's changes of counts since its last message of this kind."""

    sender: int
    dataflow: int
    batch: ProgressBatch


@dataclass(slots=True)
class Data:
    """Records for an input: `channel` is the index of its location; `size` is what the batch weighs (see flow), as its
    sender says, and `received` how many bytes it was on the wire, if it came over one."""

    sender: int
    dataflow: int
    channel: int
    time: Time
    batch: Batch
    size: int
    received: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class Taken:
    """The sender's operator has taken data of this weight, which the receiver had sent to this channel. Said only for
    channels whose pact is acknowledged."""

    sender: int
    dataflow: int
    channel: int
    size: int


@dataclass(slots=True)
class Dropped:
    """The sender has dropped a dataflow, which ends it for all."""

    sender: int
    dataflow: int


@dataclass(slots=True)
class Finished:
    """The sender's main has returned. It has built so many dataflows, and will build no more."""

    sender: int
    dataflows: int


@dataclass(slots=True)
class Consumed:
    """The sender's operators have taken data of this weight that the receiver had sent."""

    sender: int
    size: int


@dataclass(slots=True)
class Pressure:
    """The sender has too much data on its way, or waiting for its sinks; if not `on`, it no longer has. Sources on all
    workers wait, or go on. `dataflow` is the dataflow of those sinks, or ON_ITS_WAY (see flow)."""

    sender: int
    on: bool
    dataflow: int = ON_ITS_WAY


@dataclass(slots=True)
class BlocksReturned:
    """Nothing refers any more to these blocks of the receiver's memory (where they begin, see arena)."""

    sender: int
    blocks: list[int]


@dataclass(slots=True)
class Goodbye:
    """The sender has nothing more to say: an end of the connection is now no surprise."""

    sender: int


@dataclass(slots=True)
class Membership:
    """About workers that join or leave: what it is about, and plain data (see `dataflow.members`)."""

    sender: int
    about: str
    said: object = None


Message: TypeAlias = Hello | Progress | Data | Taken | Dropped
"""What concerns one dataflow."""

AnyMessage: TypeAlias = Message | Finished | Consumed | Pressure | BlocksReturned | Goodbye | Membership
