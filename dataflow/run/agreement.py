"""Whether all workers build the same dataflows, and as many. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dataflow.comm.messages import Hello
from dataflow.errors import GraphMismatch
from dataflow.text import plain

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


def first_difference(dataflow: Dataflow, hello: Hello) -> str:
    """Where a dataflow differs from what another worker says that it built."""
    mine, theirs = dataflow.graph.describe(), hello.description
    here, there = f"worker {dataflow.pump.index}", f"worker {hello.sender}"
    advice = "Every worker must build the same operators in the same order; only what goes into inputs may differ."
    for a, b in zip(mine, theirs, strict=False):
        if a != b:
            difference = f"{here} has {a}, {there} has {plain(b)}"
            return f"dataflow {dataflow.name!r} differs between workers: {difference}. {advice}"
    longer, lines = (here, mine) if len(mine) > len(theirs) else (there, theirs)
    extra = lines[min(len(mine), len(theirs))]
    return f"dataflow {dataflow.name!r} differs between workers: only {longer} has {plain(extra)}. {advice}"
