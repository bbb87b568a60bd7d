"""A sample of the rounds of signals, and rounds whose end is known. `make soak` has more of them."""

from __future__ import annotations

from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, Signals

import pytest

from tests.launch.arena import Arena
from tests.launch.signals import SUPERVISOR, Sent, draw, run_round


@pytest.mark.parametrize("seed", range(6))
def test_a_program_ends_well_whatever_is_sent_to_it(arena: Arena, seed: int) -> None:
    run_round(arena, *draw(seed))


def test_stopped_and_continued_it_gives_its_result(arena: Arena) -> None:
    everybody = [Sent(10, to, kind) for kind in (SIGSTOP, SIGCONT) for to in (SUPERVISOR, 0, 1)]
    assert run_round(arena, 2, [*everybody, Sent(30, 1, SIGCONT)]).status == 0


@pytest.mark.parametrize("kind", [SIGSTOP, SIGKILL])
def test_a_worker_that_is_lost_is_named(arena: Arena, kind: Signals) -> None:
    ended = run_round(arena, 2, [Sent(5, 1, SIGCONT), Sent(10, 1, kind)])
    assert ended.status != 0 and "worker 1" in ended.message


@pytest.mark.parametrize("to", [SUPERVISOR, 1])
def test_who_is_told_to_end_ends_them_all(arena: Arena, to: int) -> None:
    assert run_round(arena, 2, [Sent(10, to, SIGTERM)]).status != 0


def test_a_supervisor_that_is_killed_leaves_nobody_even_if_they_are_stopped(arena: Arena) -> None:
    ended = run_round(arena, 2, [Sent(10, 0, SIGSTOP), Sent(10, 1, SIGSTOP), Sent(10, SUPERVISOR, SIGKILL)])
    assert ended.status == -SIGKILL
