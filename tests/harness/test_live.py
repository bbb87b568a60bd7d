"""The live view: lines from a snapshot; in place on a terminal, few plain lines elsewhere."""

from __future__ import annotations

import io

import pytest

from megaphone.harness import Live, LoadSchedule, Snapshot
from megaphone.harness.live import bar, view
from megaphone.harness.recent import Recent

NOW = Snapshot(
    seconds=3.0,
    duration=12.0,
    offered=1e6,
    completed=998e3,
    latencies_ms=(1.25, 4.5, 20.75),
    frontier=3001,
    behind=0.002,
    outstanding=1,
    under_way="fluid",
    bins=(192, 64),
)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert all(len(line) <= width for line in view(NOW, width))


def test_the_bars_say_where_the_bins_are() -> None:
    lines = view(NOW)
    first, second = (line for line in lines if line.startswith("worker"))
    assert first.count("█") == 3 * second.count("█") > 0
    assert "192 bins" in first and "64 bins" in second
    assert [line.count("█") for line in view(Snapshot(1, 2, 1, 1, (), 0, 0, 0, bins=(0, 0)))][-2:] == [0, 0]


@pytest.mark.parametrize("fraction", [-1.0, 0.0, 0.01, 0.5, 0.999, 1.0, 7.0])
def test_bars_keep_their_width(fraction: float) -> None:
    assert len(bar(fraction, 10)) == 12


def test_before_anything_is_complete_it_says_so() -> None:
    assert "nothing was complete" in "\n".join(view(Snapshot(0, 10, 100, 0, (), 0, 0.1, 3)))


def test_a_terminal_is_drawn_over_in_whole_lines() -> None:
    stream = io.StringIO()
    live = Live(stream, lambda: [6, 2], terminal=True)
    live(NOW)
    once = stream.getvalue()
    live(NOW)
    drawn = once.count("\n")
    assert drawn == 7 and "\x1b[7A" not in once
    assert stream.getvalue() == once + f"\x1b[{drawn}A" + once
    assert "6 bins" in once


def test_a_file_gets_a_plain_line_now_and_then() -> None:
    stream = io.StringIO()
    live = Live(stream, remind=5)
    for tenths in range(0, 121, 5):
        live(Snapshot(tenths / 10, 12, 1e6, 998e3, (1.0, 2.0, 3.0), 0, 0.0, 0))
    lines = stream.getvalue().splitlines()
    assert [line.split(" s:")[0] for line in lines] == ["5.0", "10.0"]
    assert "\x1b" not in stream.getvalue()


def test_recent_looks_at_the_last_second_only() -> None:
    schedule = LoadSchedule(rate=2000, duration=10, epoch=0.5)
    through, at = list[int](), list[int]()
    recent = Recent(schedule, 0, through, at)
    assert recent.look(10) == (0.0, [])
    through += [1, 2, 4]
    at += [600_000_000, 1_700_000_000, 2_100_000_000]
    rate, (median, _, greatest) = recent.look(2_500_000_000)
    assert rate == 3000  # epochs 1 to 3 were complete within the second
    assert greatest == 1_700_000_000 - 500_000_000  # the first record of epoch 1
    assert 600_000_000 <= median <= 800_000_000
    assert recent.look(5_000_000_000) == (0.0, [])
