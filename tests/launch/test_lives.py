"""The state machine of lives and the policy of restarts, in worlds where anything may fail at any moment."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from dataflow.channels.blame import RECORD
from dataflow.errors import GraphMismatch, Terminated
from dataflow.launch.lives import Choose, Done, End, Instruction, Lives, SendBack
from dataflow.launch.verdict import Event, Exited, Failed, Idle
from dataflow.recovery.announcing import SnapshotsFail
from dataflow.recovery.catalogue import Fenced
from dataflow.recovery.manifest import SnapshotDamaged, SnapshotTooNew
from dataflow.recovery.restarts import Again, Enough, Older, Restarts, one_line
from dataflow.recovery.storage import StorageError
from tests.launch.lives_world import GRACE, PATIENCE, World

SEEDS = range(150)
RESTARTS = 4


def lives(workers: range, kind: type[Lives] = Lives) -> Lives:
    return kind(workers, Restarts(RESTARTS, 600.0), PATIENCE, GRACE)


def judge(seed: int, make: Callable[[range], Lives]) -> Done | End:
    """Runs a world; checks that failures were counted one by one, up to what is allowed."""
    world = World(seed, make, gloom=(0.02, 0.1, 0.3)[seed % 3])
    ended = world.run()
    counted = [int(found[1]) for reason in world.told if (found := re.search(r"restart (\d+) of 4", reason))]
    assert counted == list(range(1, len(counted) + 1)), world.told
    if isinstance(ended, End):
        assert len(counted) == RESTARTS, (world.told, ended)
        assert "5 times within 600 seconds" in str(ended.error.__notes__)
    return ended


def test_every_run_ends_and_nothing_is_forgotten() -> None:
    ended = [judge(seed, lives) for seed in SEEDS]
    assert {type(each) for each in ended} == {Done, End}


# ------------------------------------------------------------------------------------------------------------- mutants


class ForgetsTheDead(Lives):
    """Waits for those who are gone already."""

    def _go_back(self, now: float) -> list[Instruction]:
        self._gone = set()
        return super()._go_back(now)


class DoesNotWait(Lives):
    """Begins the next life as soon as one is back."""

    def _while_back(self, event, now):  # type: ignore[no-untyped-def]
        if isinstance(event, Idle):
            self._awaited.clear()
        return super()._while_back(event, now)


class WaitsForEver(Lives):
    """Does not kill who does not answer."""

    def _go_back(self, now: float) -> list[Instruction]:
        instructions = super()._go_back(now)
        self.deadline = float("inf")
        return instructions


class KeepsOldResults(Lives):
    """Remembers who returned in an earlier life."""

    def _begin_if_all_are_back(self) -> list[Instruction]:
        before = self._verdict
        instructions = super()._begin_if_all_are_back()
        self._verdict.results = before.results
        return instructions


class HearsOldChoices(Lives):
    """Begins a life with what was chosen for another."""

    def _chosen(self, event):  # type: ignore[no-untyped-def]
        return super()._chosen(type(event)(self.life))


class CountsConsequences(Lives):
    """Counts what happens because of a failure as one more."""

    def _while_back(self, event, now):  # type: ignore[no-untyped-def]
        if isinstance(event, Exited):
            self._awaited.discard(event.worker)
        return super()._while_back(event, now)


class IgnoresDeathsOfTheIdle(Lives):
    """Does not notice who dies after it has gone back."""

    def handle(self, event, now):  # type: ignore[no-untyped-def]
        if self._back and isinstance(event, Exited) and event.worker not in self._awaited:
            return []
        return super().handle(event, now)


class SendsBackTwice(Lives):
    """Tells everybody again when somebody else fails."""

    def _while_back(self, event, now):  # type: ignore[no-untyped-def]
        if isinstance(event, Failed):
            return [SendBack(tuple(self._awaited), self.life)]
        return super()._while_back(event, now)


MUTANTS = [
    ForgetsTheDead, DoesNotWait, WaitsForEver, KeepsOldResults, HearsOldChoices, IgnoresDeathsOfTheIdle, SendsBackTwice
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_machine_is_caught(mutant: type[Lives]) -> None:
    def caught(seed: int) -> bool:
        try:
            judge(seed, lambda workers: lives(workers, mutant))
        except (AssertionError, KeyError):
            return True
        return False

    assert any(caught(seed) for seed in SEEDS)


# ------------------------------------------------------------------------------------------------ what counts, and what


def begun(kind: type[Lives] = Lives) -> Lives:
    machine = lives(range(3), kind)
    machine.start()
    return machine


@pytest.mark.parametrize(("kind", "number"), [(Lives, 2), (CountsConsequences, 4)])
def test_what_follows_from_a_failure_is_not_counted(kind: type[Lives], number: int) -> None:
    machine = begun(kind)
    events: list[Event] = [Failed(0, ValueError("one")), Exited(0, 1), Exited(1, -9), Idle(2, 2)]
    for event in events:
        machine.handle(event, 0.0)
    machine.handle(Exited(2, -9), 1.0)
    assert f"restart {number} of 4" in machine._reasons[-1]


def test_the_policy_counts_in_a_window() -> None:
    restarts = Restarts(2, 60.0)
    error = ValueError("x")
    assert [restarts.decide(error, at) for at in (0.0, 30.0, 61.0)] == [Again(1, 2), Again(2, 2), Again(2, 2)]
    ended = restarts.decide(error, 62.0)
    assert isinstance(ended, Enough) and ended.why.startswith("it failed 3 times within 60 seconds, each time in the")
    assert restarts.decide(error, 200.0) == Again(1, 2)


def test_the_same_record_is_named() -> None:
    restarts = Restarts(1, 60.0)
    for number, why in ((5, ""), (5, "the same record failed 2 times within 60 seconds")):
        error = ValueError(f"differs each time: {why}")
        error.add_note(f"{RECORD}{number}")
        decision = restarts.decide(error, 0.0)
        assert isinstance(decision, Again) if not why else decision.why.startswith(why)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "error",
    [
        SnapshotsFail("full"),
        Terminated("told to"),
        KeyboardInterrupt(),
        GraphMismatch("two"),
        Fenced("other"),
        SnapshotTooNew("v9"),
    ],
)
def test_what_is_hopeless_is_not_tried_again(error: BaseException) -> None:
    assert Restarts(5, 60.0).decide(error, 0.0) == Enough("")


def test_what_fails_before_anything_was_built_is_not_tried_again() -> None:
    restarts = Restarts(5, 60.0)
    assert restarts.decide(ValueError("in main"), 0.0, unbuilt=True) == Enough("")
    assert restarts.decide(StorageError("away"), 0.0, unbuilt=True, choosing=True) == Enough("")
    machine = begun()
    (end,) = machine.handle(Failed(1, NameError("typo"), unbuilt=True), 0.0)
    assert isinstance(end, End)


def test_a_damaged_snapshot_is_not_counted_and_another_is_chosen() -> None:
    machine = begun()
    instructions = machine.handle(Failed(1, SnapshotDamaged("torn")), 0.0)
    for event in (Exited(1, 1), Idle(0, 2), Idle(2, 2)):
        instructions += machine.handle(event, 0.0)
    assert Choose(2, older=True) in instructions
    assert Restarts(0, 60.0).decide(SnapshotDamaged("torn"), 0.0) == Older()
    assert Restarts(0, 60.0).decide(SnapshotDamaged("all"), 0.0, choosing=True) == Enough("")


def test_zero_restarts() -> None:
    assert Restarts(0, 60.0).decide(ValueError("x"), 0.0) == Enough("restarts=0: it is not tried again")


def test_one_line_for_people() -> None:
    error = ValueError("several\nlines")
    error.add_note("in operator map")
    assert one_line(error) == "ValueError: several lines; in operator map"
    assert len(one_line(ValueError("x" * 10_000))) == 500
