"""Windows that break a rule are caught by the comparison with the oracle."""

from __future__ import annotations

from typing import Any

import pytest

from dataflow.events.watermarks import Watermarks
from dataflow.windows import aggregates, fold
from tests.windows.test_windows import test_windows_are_what_they_are_said_to_be as compare


def no_merge(self: Any, left: Any, right: Any) -> None:
    """Sessions that meet lose what one of them had."""


def one_pane_short(self: Any, panes: dict[int, Any], end: int) -> list[Any]:
    return [panes[each] for each in range(end - self._size + 2 * self._slide, end + 1, self._slide) if each in panes]


def kept_apart(self: Any, key: Any, entry: Any, at: int, values: Any, now: int, notificator: Any) -> Any:
    entry[0].append([at, at, self.aggregates.new(at, values)])
    self._wake_first(key, entry, notificator)
    return ()


def as_they_come(self: Any, time: int, fresh: list[Any], notificator: Any) -> list[Any]:
    return [(key, time, values) for key, _, values in fresh]


def nothing_late(self: Any, partition: Any, times: Any) -> list[int]:
    self._greatest[partition] = max([self._greatest.get(partition, 0), *times])
    return []


MUTANTS = [
    ("sliding", aggregates.WindowAggregates, "merge", no_merge),
    ("sliding", fold.SlidingFold, "_parts", one_pane_short),
    ("session", fold.SessionFold, "add", kept_apart),
    ("count", fold.CountFold, "ordered", as_they_come),
    ("tumbling", Watermarks, "late_of", nothing_late),
]


@pytest.mark.parametrize(("kind", "owner", "method", "mutant"), MUTANTS)
def test_a_mutant_is_caught(
    kind: str, owner: type[object], method: str, mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, method, mutant)
    caught = 0
    for seed in range(12):
        for columns in (False, True) if kind == "count" else (False,):
            try:
                compare(kind, columns, False, seed)
            except (AssertionError, ValueError, KeyError):
                caught += 1
    assert caught
