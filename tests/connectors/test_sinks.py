"""What every sink promises: prepared is durable and invisible, committed is visible, and commits can be repeated."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
import trio

from dataflow import sinks
from dataflow.columns import Columns
from tests.connectors.places import Row, Shown, place


def expected(shown: Shown, rows: list[Row]) -> list[Row]:
    """What is seen of rows that were written in this order."""
    return sorted(dict(rows).items()) if shown.keyed else sorted(rows)


def test_rows_appear_when_they_are_committed(shown: Shown) -> None:
    async def main() -> None:
        writer = shown.sink().open(place())
        assert await writer.prepare(0) is None
        await writer.write(0, [("a", 1), ("b", 2)])
        await writer.write(1, [("a", 3)])
        token = await writer.prepare(2)
        assert shown.rows() == []
        await writer.commit(token)
        assert shown.rows() == expected(shown, [("a", 1), ("b", 2), ("a", 3)])
        assert await writer.prepare(3) is None
        await writer.commit(token)
        assert shown.rows() == expected(shown, [("a", 1), ("b", 2), ("a", 3)])
        writer.close()

    trio.run(main)


def test_what_was_prepared_and_not_committed_is_in_the_next_token(shown: Shown) -> None:
    async def main() -> None:
        writer = shown.sink().open(place())
        await writer.write(0, [("a", 1)])
        await writer.prepare(1)  # the snapshot was given up
        await writer.write(1, [("a", 2)])
        token = await writer.prepare(2)
        writer.close()
        other = shown.sink().open(place(worker=3, incarnation=2))
        for _ in range(2):
            await other.commit(token)
            assert shown.rows() == expected(shown, [("a", 1), ("a", 2)])
        other.close()

    trio.run(main)


def test_recovery_commits_and_removes_what_no_token_names(shown: Shown) -> None:
    async def main() -> None:
        first, second = (shown.sink().open(place(worker)) for worker in (0, 1))
        await first.write(0, [("a", 1)])
        await second.write(0, [("b", 1)])
        tokens = [await first.prepare(1), await second.prepare(1)]
        await first.write(1, [("c", 1)])
        assert await first.prepare(2)  # of a snapshot that never was
        await second.write(1, [("d", 1)])
        for writer in (first, second):
            writer.close()
        for incarnation in (2, 3):
            writer = shown.sink().open(place(0, incarnation))
            await writer.recover(tokens)
            assert shown.rows() == [("a", 1), ("b", 1)]
            assert shown.staged() == 0
            writer.close()

    trio.run(main)


def test_output_that_was_taken_away_is_told(shaped: Shown) -> None:
    """Rows that are neither staged nor committed: somebody has replaced the table or the folder."""

    async def main() -> None:
        writer = shaped.sink().open(place())
        await writer.write(0, [("a", 1)])
        token = await writer.prepare(1)
        assert isinstance(token, list)
        writer.close()
        lost = [[f"1-feed-0-7{'.jsonl' if isinstance(token[0][1], str) else ''}", *token[0][1:]]]
        other = shaped.sink().open(place(0, 2))
        with pytest.raises(sinks.SinkError, match="replaced since the last snapshot"):
            await other.recover([lost])
        other.close()

    trio.run(main)


def test_columns_and_rows_both_go_in(shaped: Shown) -> None:
    async def main() -> None:
        writer = shaped.sink().open(place())
        await writer.write(0, Columns({"total": [1, 2], "word": ["a", "b"]}))
        await writer.write(1, [("c", 3), ["d", 4], {"total": 5, "word": "e"}])
        await writer.commit(await writer.prepare(2))
        assert shaped.rows() == [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)]
        writer.close()

    trio.run(main)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([("a", 1, 2)], "has 2 columns, .*'word', 'total'.*, and a record came with 3: .*'a', 1, 2"),
        ([("a",)], "and a record came with 1"),
        ([{"word": "a", "sum": 1}], r"has the columns \('word', 'total'\), and a record came with \('word', 'sum'\)"),
        ([17], "has 2 columns, and a record came that has none: 17"),
        (Columns({"word": ["a"]}), r"a batch came with \('word',\): columns.select"),
        (Columns({"word": ["a"], "total": [1], "more": [2]}), "a batch came with"),
    ],
)
def test_rows_that_do_not_fit_are_refused(shaped: Shown, batch: Any, message: str) -> None:
    async def main() -> None:
        writer = shaped.sink().open(place())
        try:
            with pytest.raises(sinks.SinkError, match=message):
                await writer.write(0, batch)
        finally:
            writer.close()

    trio.run(main)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_each_row_is_shown_once(shown: Shown, seed: int) -> None:
    """Writes, snapshots that count and that do not, crashes, repeated commits, and zombies of earlier incarnations."""
    trio.run(_live_and_die, shown, random.Random(seed))


async def _live_and_die(shown: Shown, chance: random.Random) -> None:
    sink = shown.sink()
    durable: list[Row] = []  # rows before the last snapshot that counts
    token: Any = None  # of that snapshot
    shown_at_least = 0  # how many of the durable rows have been committed
    incarnation, time, number = 1, 0, 0
    writer = sink.open(place(0, incarnation))
    await writer.recover([])
    zombies: list[sinks.Writer] = []
    tokens: list[list[Any]] = [[]]
    since: list[Row] = []  # written since
    for _ in range(40):
        action = chance.choice("wwwwspczr")
        if action == "w":
            rows = [(chance.choice("abcdef"), number := number + 1) for _ in range(chance.randrange(1, 4))]
            since += rows
            await writer.write(time := time + 1, rows)
        elif action in "sp":  # a snapshot, that counts or is given up
            prepared = await writer.prepare(time + 1)
            if action == "s":
                token, durable, since = prepared, durable + since, []
                tokens.append([token] if token is not None else [])
                if token is not None and chance.random() < 0.7:
                    await writer.commit(token)
                    shown_at_least = len(durable)
        elif action == "c" and token is not None:
            await chance.choice([writer, *zombies]).commit(token)
            shown_at_least = len(durable)
        elif action == "z" and zombies:
            zombie = chance.choice(zombies)
            await zombie.write(time + 1, [("z", -1)])
            await zombie.prepare(time + 2)
            with suppress(sinks.SinkError):  # what it would recover may be long gone
                await zombie.recover([] if chance.random() < 0.5 else chance.choice(tokens))
        elif action == "r":  # a crash: what was not in a snapshot is forgotten
            zombies.append(writer)
            incarnation, since = incarnation + 1, []
            writer = sink.open(place(0, incarnation))
            await writer.recover([token] if token is not None else [])
            shown_at_least = len(durable)
        visible = shown.rows()
        assert visible in [expected(shown, durable[:count]) for count in range(shown_at_least, len(durable) + 1)]
    if token is not None:
        await writer.commit(token)
    assert shown.rows() == expected(shown, durable)
    for each in (writer, *zombies):
        each.close()
