"""The broadcast of progress is safe under any delay, and live; a broken one is found out."""

from __future__ import annotations

import pytest

from dataflow.errors import ProtocolError
from dataflow.progress.broadcast import Inbox, Outbox, ProgressBatch
from tests.progress.simulation import BROKEN, Simulation, Unsafe, run_case, simulation_of_seed

BLOCK = 60


@pytest.mark.parametrize("first", range(0, 1200, BLOCK))
def test_no_view_is_ahead_of_the_truth_and_all_end_empty(first: int) -> None:
    for seed in range(first, first + BLOCK):
        run_case(seed)


@pytest.mark.parametrize("variant", BROKEN)
def test_the_simulation_finds_a_broken_protocol(variant: type[Simulation]) -> None:
    """A test that cannot fail proves nothing: each way of breaking the protocol must show within few cases."""
    assert any(_is_unsafe(seed, variant) for seed in range(200)), f"{variant.__name__} went unnoticed"


def _is_unsafe(seed: int, variant: type[Simulation]) -> bool:
    try:
        run_case(seed, variant)
    except Unsafe:
        return True
    return False


def test_a_seed_replays_exactly() -> None:
    for seed in range(7):
        logs = []
        for _ in range(2):
            simulation = simulation_of_seed(seed)
            simulation.run(40)
            logs.append(simulation.log)
        assert logs[0]
        assert logs[0] == logs[1]


def test_a_failure_names_its_seed() -> None:
    seed = next(seed for seed in range(60) if _is_unsafe(seed, BROKEN[0]))
    with pytest.raises(Unsafe) as failure:
        run_case(seed, BROKEN[0])
    assert any(f"run_case({seed})" in note for note in failure.value.__notes__)


# --------------------------------------------------------------------------------------------------- Outbox and Inbox


def test_an_outbox_says_what_does_not_cancel_and_then_nothing() -> None:
    outbox = Outbox(3)
    outbox.pending.update((0, 7), +1)
    outbox.pending.update((1, 7), +1)
    outbox.pending.update((1, 7), -1)
    assert outbox.flush() == ProgressBatch(3, 0, (((0, 7), 1),))
    assert outbox.flush() is None


def test_a_flush_of_nothing_uses_no_sequence_number() -> None:
    outbox = Outbox(0)
    outbox.pending.update((0, 0), +1)
    outbox.pending.update((0, 0), -1)
    assert outbox.flush() is None
    outbox.pending.update((0, 1), +1)
    batch = outbox.flush()
    assert batch is not None
    assert batch.sequence == 0


def test_an_inbox_accepts_each_sender_in_order() -> None:
    inbox = Inbox()
    changes = (((0, 0), 1),)
    for sender, sequence in ((0, 0), (1, 0), (0, 1), (0, 2), (1, 1)):
        assert inbox.accept(ProgressBatch(sender, sequence, changes)) == changes


@pytest.mark.parametrize(("sequences", "fault"), [((1,), "lost"), ((0, 0), "repeated"), ((0, 2), "overtaken")])
def test_an_inbox_refuses_what_is_out_of_order(sequences: tuple[int, ...], fault: str) -> None:
    inbox = Inbox()
    *good, bad = (ProgressBatch(5, sequence, ()) for sequence in sequences)
    for batch in good:
        inbox.accept(batch)
    with pytest.raises(ProtocolError, match=rf"batch {bad.sequence} of worker 5 arrived when {len(good)} was due"):
        inbox.accept(bad)
