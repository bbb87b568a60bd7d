"""A peer that has the key and lies: each lie that we know of by name, and a sample of random ones."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.columns import Columns
from dataflow.comm import codec
from dataflow.comm.backlog import Backlog
from dataflow.comm.flow import Flow
from dataflow.comm.messages import Data, Hello, Progress
from dataflow.comm.rows import encode_rows
from dataflow.comm.wire import encode_messages
from dataflow.errors import ProtocolError
from dataflow.progress.broadcast import ProgressBatch
from tests.comm import fuzz, hostile
from tests.comm.hostile import Lie, forge
from tests.engine.harness import failsafe

ROWS = encode_rows([1, 2, 3])
MOST = 32 << 20  # bytes that a lie may make the honest worker allocate
PLAIN = ("integers", "rows", 2, False)


def progress(location: Any = 0, time: Any = 0, count: Any = 1, sequence: Any = 0, dataflow: Any = 0) -> Lie:
    return forge(fuzz.open_tree(codec.encode([1, dataflow, sequence, [location], [time], [count]])))


def data(dataflow: Any = 0, channel: Any = 1, time: Any = 0, size: Any = 64, first: Any = 0, rows: bytes = ROWS) -> Lie:
    message = codec.encode([2, dataflow, channel, time, size, first, 0])
    return forge(fuzz.open_tree(message), rows)


def columns(shapes: Any, *buffers: bytes) -> Lie:
    return forge([2, 0, 1, 0, 64, 0, 1, shapes], *buffers)


def nested(depth: int) -> list[Any]:
    return [1, [nested(depth - 1)]] if depth else [0, [1]]


# By name: a lie, and what is said about it. It is told in the frame of the first greeting's successor.
LIES: dict[str, tuple[Lie, str]] = {
    "a billion rows without columns": (columns([10**9]), "1000000000 rows in 0 columns"),
    "a billion strings": (columns([10**9, ["a", "string", [False, False, False]]]), "no sense"),
    "a column twice": (columns([1, ["a", "<i8", 1], ["a", "<i8", 1]], bytes(8), bytes(8)), "or two of them"),
    "a column without a name": (columns([1, [5, "<i8", 1]], bytes(8)), "the name 5"),
    "a short column": (columns([2, ["a", "<i8", 1]], bytes(8)), "1 of 2 rows"),
    "a column in no buffer": (columns([0, ["a", "<i8", 0]], bytes(8)), "in 0 buffers"),
    "strings in -1 buffers": (columns([0, ["a", "string", [-1, 1, 1]]], bytes(8)), "buffers"),
    "one buffer for many batches": (
        lambda tree, pieces: ([[len(ROWS)], [[2, 0, 1, 0, 64, 0, 0]] * 100_000], [ROWS + bytes(-len(ROWS) % 16)]),
        "buffer 0 where 1 of 1 is due",
    ),
    "a buffer that nobody reads": (lambda tree, pieces: ([[16], []], [bytes(16)]), "0 of 1 buffers are used"),
    "a negative buffer": (data(first=-1), "buffer -1"),
    "rows that are one too few": (data(rows=codec.encode([4, [0, [1, 2, 3]]])), "3 of 4 are there"),
    "rows counted by a bool": (data(rows=codec.encode([True, [0, [1]]])), "not an integer"),
    "rows of a kind that is none": (data(rows=codec.encode([1, [9, [1]]])), "unknown kind of column 9"),
    "rows that are nested for ever": (data(rows=codec.encode([1, nested(20)])), "at depth 9"),
    "data for a dataflow that it has not built": (data(dataflow=7), "may not say this now: Data of dataflow 7"),
    "data for dataflow -1": (data(dataflow=-1), "-1 where a number belongs"),
    "data for no channel": (data(channel=99), "channel 99, which nobody reads"),
    "data for a local channel": (data(channel=3), "channel 3, which nobody reads"),
    "data that weighs less than nothing": (data(size=-(10**12)), "where a number belongs"),
    "data at a time of another type": (data(time="now"), "sent 'now' for input 0 of take"),
    "data at a negative time": (data(time=-3), "sent -3 for input 0 of take"),
    "progress at no location": (progress(location=1000), "progress at location 1000"),
    "progress at location -1": (progress(location=-1), "progress at location -1"),
    "progress at a location that is a bool": (progress(location=True), "not an integer"),
    "progress at a time of text": (progress(time="\x1b[2Jnow"), "sent '\\x1b[2Jnow'"),
    "progress at a float": (progress(time=1.0), "sent 1.0 for"),
    "progress at a bool": (progress(time=True), "sent True for"),
    "progress at a pair": (progress(time=(1, 2)), r"sent (1, 2) for"),
    "progress at a set": (progress(time={1}), "sent {1} for"),
    "progress at a time without end": (progress(time=1 << 100_000), "that cannot be shown"),
    "progress before time began": (progress(time=-1), "sent -1 for"),
    "a count of another type": (progress(count=0.5), "not an integer"),
    "a count without end": (progress(count=1 << 70), "a count that cannot be"),
    "a sequence that is negative": (progress(sequence=-1), "-1 where a number belongs"),
    "progress of a dataflow to come": (progress(dataflow=1 << 40), "may not say this now"),
    "a second greeting": (forge([0, 0, "again", []]), "may not say this now: Hello of dataflow 0"),
    "a greeting out of order": (forge([0, 9, "later", []]), "may not say this now: Hello of dataflow 9"),
    "another dataflow": (forge([0, 1, "next", ["\x1b[31mred"]]), "\\x1b[31mred"),
    "a greeting of numbers": (forge([0, 1, "next", [1, 2]]), "not text"),
    "a greeting without a name": (forge([0, 1, None, []]), "not text"),
    "acknowledgements of nothing": (forge([5, 10**15]), "were never sent to it"),
    "acknowledgements below zero": (forge([5, -(10**15)]), "where a number belongs"),
    "a taking of nothing": (forge([9, 0, 1, 10**15]), "acknowledges what nobody sent it"),
    "a taking at no channel": (forge([9, 0, 77, 1]), "acknowledges what nobody sent it"),
    "pressure of a dataflow to come": (forge([6, True, 10**9]), "may not say this now: Pressure"),
    "pressure that is a number": (forge([6, 1, 0]), "where true or false belongs"),
    "pressure of dataflow -2": (forge([6, True, -2]), "-2 where a number belongs"),
    "memory that was not lent": (forge([8, [4096]]), "gives back shared memory"),
    "memory that is no list": (forge([8, 4096]), "where a list of blocks belongs"),
    "an end of a dataflow to come": (forge([3, 8]), "may not say this now: Dropped of dataflow 8"),
    "an end with dataflows to come": (forge([4, 10**6]), "may not say this now: Finished with 1000000"),
    "an end below zero": (forge([4, -1]), "-1 where a number belongs"),
    "an early goodbye": (forge([7]), "may not say this now: Goodbye"),
    "a message of no kind": (forge([77, 1]), "a message that is none"),
    "a message of a kind that is a bool": (forge([True, 1]), "a message that is none"),
    "a message that is no list": (forge({"a": 1}), "a message that is none"),
    "a message with too many fields": (forge([4, 1, 1]), "too many fields"),
    "deep nesting": (forge(fuzz.open_tree(b"\x91" * 500 + b"\x90")), "a message that is none"),
}


def lying(lie: Lie, at: int = 1) -> Any:
    def prepare(link: hostile.LyingLink) -> None:
        link.lie, link.at = lie, at

    return prepare


@pytest.mark.parametrize("name", LIES)
def test_a_lie_ends_the_computation_by_name(name: str) -> None:
    lie, expected = LIES[name]
    tracemalloc.start()
    try:
        with failsafe(30):
            outcome = hostile.meet(lying(lie), PLAIN)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert outcome.told
    told = hostile.judge(outcome)
    assert expected in told and "worker 1" in told
    assert peak < MOST


@pytest.mark.parametrize("times", ["pairs", "points"])
@pytest.mark.parametrize("time", [0, (1, 2, 3), ("x", 1), [0, 0], (1.0, 1.0), None, (True, True)], ids=repr)
def test_times_of_other_types(times: str, time: Any) -> None:
    with failsafe(30):
        told = hostile.judge(hostile.meet(lying(progress(time=time)), (times, "rows", 2, False)))
    assert "whose times are" in told


def test_a_time_whose_fields_are_not_what_its_class_expects() -> None:
    time = fuzz.Extension(2, ["tests.progress.pairs:Pair", ["x", None]])
    lie = forge([1, 0, 0, [0], [time], [1]])
    with failsafe(30):
        told = hostile.judge(hostile.meet(lying(lie), ("points", "rows", 2, False)))
    assert "TypeError when it is compared" in told


def test_goodbyes_and_progress_at_any_moment() -> None:
    with failsafe(30):
        for lie in (forge([7]), progress()):
            for at in range(2, 12):
                hostile.judge(hostile.meet(lying(lie, at), PLAIN))


def test_honest_peers_are_believed() -> None:
    chance = Random(0)
    with failsafe(60):
        for _ in range(8):
            outcome = hostile.meet(lambda link: None, hostile.random_arguments(chance))
            assert hostile.judge(outcome) == "done" and outcome.result


def test_a_sample_of_random_lies() -> None:
    with failsafe(120):
        for seed in range(100):
            hostile.run_case(seed)


def test_the_random_lies_are_told_and_found_out() -> None:
    # A battery whose lies nobody hears, or that all fail at the first check, would find nothing.
    ends: Counter[str] = Counter()
    with failsafe(60):
        for seed in range(1000, 1060):
            chance = Random(seed)
            arguments = hostile.random_arguments(chance)
            outcome = hostile.meet(lambda link, chance=chance: hostile._prepare(chance, link), arguments)  # type: ignore[misc]
            ends[hostile.judge(outcome)[:45] if outcome.told else "not told"] += 1
    assert ends["not told"] < 30 and ends["done"] + ends["waiting"] > 1 and len(ends) > 12


# ----------------------------------------------------------------------------------------------------------- the pieces


def test_what_is_kept_for_dataflows_to_come_is_bounded_for_each_peer() -> None:
    held = Backlog(limit=1)
    batch = Data(1, 5, 0, 0, Columns({"a": np.zeros(4)}), 0, received=1 << 26)
    for _ in range(3):
        held.hold(batch, 0)
    held.hold(Data(2, 5, 0, 0, [1], 0, received=1 << 26), 0)  # another peer has an account of its own
    with pytest.raises(ProtocolError, match=r"worker 1 has sent [\d,]+ bytes for dataflow 5 .* worker 0 has not built"):
        held.hold(batch, 0)
    assert len(held.release(5)) == 4 and held.senders == {}
    for _ in range(3):
        held.hold(batch, 0)


def test_greetings_and_progress_are_weighed_as_well() -> None:
    held = Backlog(limit=1)
    hello = Hello(1, 3, "x", ("y" * (1 << 27),))
    held.hold(hello, 0)
    with pytest.raises(ProtocolError, match="worker 1"):
        held.hold(hello, 0)
    changes = tuple(((n, 0), 1) for n in range(1 << 19))
    said = Progress(2, 3, ProgressBatch(2, 0, changes))
    held.hold(said, 0)
    with pytest.raises(ProtocolError, match="worker 2"):
        held.hold(said, 0)


def test_nobody_can_acknowledge_what_another_was_sent() -> None:
    flow = Flow(peers=3, limit=100)
    flow.sent(0, 80, 1)
    with pytest.raises(ProtocolError, match="worker 2 acknowledges 80 bytes, of which 80 were never sent to it"):
        flow.acknowledged(0, 80, 2)
    flow.acknowledged(0, 80, 1)
    assert flow.on_its_way == 0


def test_rows_without_columns_are_refused_where_they_are_sent() -> None:
    batch = Columns({"a": [1, 2]}).select([])
    with pytest.raises(TypeError, match="2 rows without columns cannot be sent"):
        encode_messages([Data(0, 0, 0, 0, batch, 0)])
