"""Progress is shown often enough to be seen, and seldom enough to cost nothing; time here is a counter."""

import io

import pytest

from bench.progress import Display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Stands still unless told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run_for(stream: io.StringIO, ticks: int, seconds_a_tick: float) -> list[str]:
    clock = Clock()
    with Display(stream, clock, redraw=0.1, remind=10.0).progress("work", ticks) as bar:
        for _ in range(ticks):
            clock.now += seconds_a_tick
            bar.advance()
    return stream.getvalue().replace("\r\x1b[K", "\n").strip().splitlines()


def test_a_log_gets_one_line_for_a_short_run_however_many_ticks() -> None:
    assert run_for(io.StringIO(), 100_000, 0.00001) == ["work: done in 1.0 s"]


def test_a_log_is_reminded_now_and_then_of_a_long_run() -> None:
    assert run_for(io.StringIO(), 25, 1.0) == ["work: 40%, 15 s left", "work: 80%, 5 s left", "work: done in 25.0 s"]


def test_a_terminal_gets_a_bar_that_fills() -> None:
    first, *_, last_bar, end = run_for(Terminal(), 10, 0.2)
    assert first == "work " + "░" * 30 + "   0%"
    assert last_bar == "work " + "█" * 30 + " 100%, 0 s left"
    assert end == "work: done in 2.0 s"


def test_a_terminal_is_not_redrawn_for_every_tick() -> None:
    assert len(run_for(Terminal(), 10_000, 0.0001)) <= 13


def test_a_run_that_raises_is_not_called_done() -> None:
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), Display(stream, Clock()).progress("work", 2):
        raise ZeroDivisionError
    assert stream.getvalue() == "work: stopped in 0.0 s\n"


def test_nothing_to_do_and_too_much_done_are_both_complete() -> None:
    display = Display(io.StringIO(), Clock())
    assert display.progress("nothing", 0).fraction() == 1.0
    with display.progress("more", 2) as bar:
        bar.advance(5)
        assert bar.fraction() == 1.0
