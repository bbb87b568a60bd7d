"""Programs on workers that share a hall: the same answers as everywhere, whoever reads and writes when, and nobody is
left asleep. Rules that are broken on purpose are found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import dataflow
from dataflow.comm.gathering import Gathering
from dataflow.comm.link import Link
from dataflow.comm.linked import Linked
from dataflow.run.pump import Pump
from tests.comm import halls
from tests.comm.halls import ROOMY, TINY, InHall
from tests.engine.harness import failsafe
from tests.fuzz.generating import random_program
from tests.fuzz.running import check, main
from tests.programs.cases import PROGRAMS, check_program


def in_hall(seed: int) -> InHall:
    """Some have a worker that has no part in the hall, as those of other hosts and those who have joined."""
    workers = 2 + seed % 3
    outsiders = int(workers > 2 and seed % 2 == 1)
    return InHall(workers, seed, debug=seed % 4 == 0, outsiders=outsiders, sizes=TINY if seed % 3 else ROOMY)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_in_a_hall(program: str) -> None:
    with failsafe(60):
        for seed in range(30):
            check_program(program, in_hall(seed), seed)


def test_random_programs_in_a_hall() -> None:
    with failsafe(120):
        for seed in range(30_000, 30_025):
            program = replace(random_program(seed), compiled=False)
            check(program, InHall(program.peers, seed, sizes=TINY if seed % 2 else ROOMY)(main, program))


def test_others_do_take_turns_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    # A seed that leaves all to trio would try few interleavings.
    made: list[halls.Interleaving] = []
    join = halls.join

    def note(workers: int, between: halls.Interleaving, *rest: Any) -> Any:
        made.append(between)
        return join(workers, between, *rest)

    monkeypatch.setattr(halls, "join", note)
    for seed in range(30):
        check_program("word count", in_hall(seed), seed)
    assert sum(between.turns > 10 for between in made) > 10 and any(between.turns == 0 for between in made)


# --------------------------------------------------------------------------------------------------- broken on purpose


def _sleeps_without_another_look(patch: pytest.MonkeyPatch) -> None:
    def may_sleep(self: Any, interest: int) -> bool:
        self._hall.bells[self._me] = interest | 1
        self._wrote = self._looked = False
        return True

    patch.setattr(Gathering, "may_sleep", may_sleep)


def _wakes_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gathering, "wake", lambda self, moved: None)


def _watches_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pump, "may_sleep", lambda self: not self.busy and self.transport.may_sleep(0))


def _leaves_it_to_others_always(patch: pytest.MonkeyPatch) -> None:
    wake = Gathering.wake

    def only_what_is_urgent(self: Any, moved: int) -> None:
        if moved == halls.EVERYTHING:
            wake(self, moved)

    patch.setattr(Gathering, "wake", only_what_is_urgent)


def _does_not_mind_what_waited_for_room(patch: pytest.MonkeyPatch) -> None:
    flush = Gathering.flush

    def forgetful(self: Any, links: Any) -> bool:
        done = flush(self, links)
        self._urgent = False
        return done

    patch.setattr(Gathering, "flush", forgetful)


def _takes_all_for_neighbours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Linked, "_count_outsiders", lambda self: None)


def _sleeps_for_what_it_waited_for_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Linked, "_settle", lambda self: None)


def _looks_at_boards_first(patch: pytest.MonkeyPatch) -> None:
    def collect(self: Any) -> bool:
        if self._wrote:
            self._wrote, self._looked = False, True
        counts = self._hall.counts.tobytes()
        gathering.fence()
        heads = self._hall.my_heads.tobytes()
        news = counts != self._seen_counts or heads != self._seen_heads
        self._seen_counts[:] = counts
        self._read_boards(memoryview(counts).cast("q"))
        self._seen_heads = heads
        self._read_rings(memoryview(heads).cast("q"))
        return news

    from dataflow.comm import gathering

    patch.setattr(Gathering, "collect", collect)


def _writes_rings_while_the_board_is_full(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Link, "gate", property(lambda self: None, lambda self, gate: None), raising=False)

    def flush(self: Any) -> None:
        for link in self._posted:
            link.flush()
        if self._gathering is None or self._gathering.flush(self._posted):
            self._posted.clear()
            self._said = False

    patch.setattr(Linked, "flush", flush)


def _forgets_that_others_wait_for_room(patch: pytest.MonkeyPatch) -> None:
    from dataflow.comm.ring import RingPipe

    patch.setattr(RingPipe, "wanted", False)


MUTANTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    _sleeps_without_another_look,
    _wakes_nobody,
    _watches_nothing,
    _leaves_it_to_others_always,
    _does_not_mind_what_waited_for_room,
    _takes_all_for_neighbours,
    _sleeps_for_what_it_waited_for_before,
    _looks_at_boards_first,
    _writes_rings_while_the_board_is_full,
    _forgets_that_others_wait_for_room,
]


async def much_to_say(worker: dataflow.Worker) -> int:
    """A batch that is many times as large as a ring, and nothing else that would wake anybody."""
    taken = 0

    def take(_: Any, batch: list[str]) -> None:
        nonlocal taken
        taken += len(batch)

    with worker.dataflow() as scope:
        words, stream = scope.input()
        probe = stream.exchange(lambda _: 1).inspect_batch(take).probe()
    if worker.index == 0:
        words.send(["x" * 40] * 100)
    words.close()
    await probe.wait_done()
    return taken


async def goes_round(worker: dataflow.Worker) -> None:
    """A record that goes round on its own worker, several times in one step, while the others only wait."""

    def body(stream: dataflow.Stream[int]) -> Any:
        done, more = stream.map(lambda n: n - 1).branch(lambda n: n <= 0)
        return more, done

    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = stream.iterate(body).probe()
    for epoch in range(5):
        if worker.index == 0:
            numbers.send([4])
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)


async def in_step(worker: dataflow.Worker) -> None:
    """All go from epoch to epoch together, and nobody has anything to say but that."""
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = stream.exchange(lambda n: n).probe()
    for epoch in range(10):
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)


def check_all(seed: int) -> None:
    in_hall(seed)(goes_round)
    in_hall(seed)(in_step)
    for program in ("word count", "several", "root loop"):
        check_program(program, in_hall(seed), seed)
    run = in_hall(seed)
    assert run(much_to_say) == [0, 100, *[0] * (run.workers - 2)]


def test_what_is_larger_than_a_ring() -> None:
    for seed in range(10):
        check_all(seed)


def test_nothing_is_found_where_no_rule_is_broken() -> None:
    # Or the next test would find every mutant by what is wrong without it.
    with failsafe(120):
        for seed in range(200):
            check_all(seed)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__.strip("_").replace("_", " "))
def test_a_broken_rule_is_found_out(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with failsafe(60):
        assert any(fails(seed) for seed in range(200))


def fails(seed: int) -> bool:
    """Whether something goes wrong, whatever that is."""
    try:
        check_all(seed)
    except Exception:
        return True
    return False
