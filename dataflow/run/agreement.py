"""Whether all workers build the same number of dataflows. Pure. (That they are the same is said in Hello.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dataflow.errors import GraphMismatch

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow


def check_finished(me: int, built: int, running: Sequence[Dataflow], finished: Mapping[int, int]) -> None:
    """GraphMismatch if another worker's main has returned without building what this one has.

    `finished` says how many dataflows a peer has built in all.
    """
    for peer, count in finished.items():
        if count < built:
            name = next((dataflow.name for dataflow in running if dataflow.number >= count), f"dataflow {count}")
            raise GraphMismatch(
                f"worker {peer} finished after building {count} dataflows; worker {me} has built "
                f"{built}: {name!r} exists here only. Every worker must build the same dataflows, "
                "in the same order."
            )


def check_unbuilt(me: int, built: int, unbuilt: Mapping[int, Sequence[int]]) -> None:
    """GraphMismatch if this worker's main has returned, and others have built what it has not: by number, who."""
    for number, senders in unbuilt.items():
        raise GraphMismatch(
            f"worker {senders[0]} built dataflow number {number}, and worker {me} finished after "
            f"building {built}. Every worker must build the same dataflows in the same order."
        )
