"""Reading from a position gives exactly the rest, wherever the reader was stopped."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow import EventWriter, sources
from dataflow.comm import codec
from dataflow.errors import ConstructionError
from dataflow.operators.replay import CapturedBatch, CapturedFrontier

Items = list[tuple[Any, Any, Any]]
quick = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def read(source: sources.Partitions[Any], partition: str, position: Any = None, stop: int | None = None) -> Items:
    """The items of a partition from a position on, or the first few of them."""

    async def main() -> Items:
        items: Items = []
        reading = source.read(partition, position)
        if isinstance(reading, Iterator):
            return list(itertools.islice(reading, stop))
        async for item in reading:
            items.append(item)
            if len(items) == stop:
                break
        close = getattr(reading, "aclose", None)
        if close is not None:
            await close()
        return items

    return trio.run(main)


def names(source: sources.Partitions[Any]) -> list[str]:
    return list(trio.run(source.partitions))


def records(items: Items) -> list[Any]:
    return [record for _, _, batch in items for record in batch]


def stopped_anywhere(source: sources.Partitions[Any], partition: str, others: sources.Partitions[Any]) -> list[Any]:
    """All records; stopping behind each item and going on, with other batches, gives the same. Positions are plain."""
    whole = read(source, partition)
    for count in range(1, len(whole) + 1):
        behind = codec.decode(codec.encode(whole[count - 1][0]))
        rest = read(others, partition, behind)
        assert records(whole[:count]) + records(rest) == records(whole)
    return records(whole)


lines = st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), max_size=6), max_size=12)


@quick
@given(lines, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 5), st.integers(1, 5))
def test_lines(tmp_path: Path, texts: list[str], end: str, ended: bool, one: int, two: int) -> None:
    path = tmp_path / "some.txt"
    text = end.join(texts) + (end if ended and texts else "")
    path.write_bytes(text.encode())
    expected = texts if (ended or not texts) or texts[-1] else texts[:-1]
    got = stopped_anywhere(sources.lines(path, one), "some.txt", sources.lines(path, two))
    assert got == expected


@quick
@given(st.lists(st.one_of(st.integers(), st.text(max_size=3), st.dictionaries(st.text(max_size=2), st.booleans()))))
def test_json_lines(tmp_path: Path, values: list[Any]) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text("".join(f"{json.dumps(value)}\n\n" for value in values), encoding="utf-8")
    assert stopped_anywhere(sources.json_lines(path, 3), "some.jsonl", sources.json_lines(path, 1)) == values


fields = st.text(st.sampled_from('ab,"\n '), max_size=5)


@quick
@given(st.lists(st.tuples(fields, fields), max_size=8), st.integers(1, 4), st.booleans())
def test_csv_with_records_of_several_lines(
    tmp_path: Path, rows: list[tuple[str, str]], batch: int, ended: bool
) -> None:
    path = tmp_path / "some.csv"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("x", "y"), *rows])
    path.write_text(text.getvalue() if ended else text.getvalue().removesuffix("\n"), encoding="utf-8")
    got = stopped_anywhere(sources.csv(path, batch), "some.csv", sources.csv(path, 2))
    assert got == [{"x": x, "y": y} for x, y in rows]


@quick
@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_parquet(tmp_path: Path, rows: int, group: int, one: int, two: int) -> None:
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table({"n": list(range(rows)), "s": [str(n) for n in range(rows)]}), path, row_group_size=group)
    got = stopped_anywhere(sources.parquet(path, one), "some.parquet", sources.parquet(path, two))
    assert got == [(n, str(n)) for n in range(rows)]
    assert records(read(sources.parquet(path, columns=["s"]), "some.parquet")) == [(str(n),) for n in range(rows)]


def test_generators_and_restartable_iterators() -> None:
    def squares(position: object | None) -> Iterator[tuple[object, int]]:
        start = position["next"] if isinstance(position, dict) else 0
        for n in range(start, 10):
            yield {"next": n + 1}, n * n

    async def waits(start: int) -> AsyncIterator[int]:
        for n in range(start, 7):
            await trio.lowlevel.checkpoint()
            yield n

    expected = [n * n for n in range(10)]
    assert stopped_anywhere(sources.restartable(squares, 3), "all", sources.restartable(squares, 4)) == expected
    counted = sources.generator(lambda start: range(start, 10), 4)
    assert stopped_anywhere(counted, "all", sources.generator(lambda start: range(start, 10))) == list(range(10))
    assert stopped_anywhere(sources.generator(waits), "all", sources.generator(waits, 3)) == list(range(7))
    assert len(read(sources.generator(waits), "all")) == 7, "what makes us wait is sent one by one"
    shared = sources.shares(lambda name, position: squares(position) if name == "x" else iter([]), ["x", "y"])
    assert names(shared) == ["x", "y"] and records(read(shared, "x")) == expected


def test_captures_in_the_order_of_times(tmp_path: Path) -> None:
    with open(tmp_path / "one", "wb") as file:
        writer = EventWriter(file)
        for event in (
            CapturedBatch(3, ("d",)),
            CapturedBatch(1, ("b",)),
            CapturedBatch(0, ("a",)),
            CapturedFrontier(((1, 1), (0, -1))),
            CapturedBatch(1, ("c",)),
            CapturedFrontier(((4, 1), (1, -1))),
            CapturedFrontier(((4, -1),)),
        ):
            writer.write(event)
    source = sources.replay(tmp_path)
    assert stopped_anywhere(source, "one", source) == ["a", "b", "c", "d"]
    assert [time for _, time, batch in read(source, "one") if batch] == [0, 1, 1, 3]
    assert records(read(source, "one", [2, 0])) == ["d"]


# Which files


def test_a_file_a_folder_and_a_pattern(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.log", ".hidden", "_staged"):
        (tmp_path / name).write_text("x\n", encoding="utf-8")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "d.txt").write_text("deep\n", encoding="utf-8")
    assert names(sources.lines(tmp_path)) == ["a.txt", "b.txt", "c.log"]
    assert names(sources.lines(f"{tmp_path}/*.txt")) == ["a.txt", "b.txt"]
    deep = sources.lines(f"{tmp_path}/**/*.txt")
    assert names(deep) == ["a.txt", "b.txt", "inner/d.txt"]
    assert records(read(deep, "inner/d.txt")) == ["deep"]
    assert names(sources.lines(tmp_path / "a.txt")) == ["a.txt"]


def test_what_is_not_there_is_told_unless_it_may_come(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", f"{tmp_path}/*.txt"):
        with pytest.raises(sources.SourceError, match="there is no file or folder"):
            names(sources.lines(path))
        assert names(sources.lines(path, follow=True)) == []
    assert names(sources.lines(tmp_path)) == []


# What is wrong with a file


def test_errors_name_the_file_and_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(b"good\nbad \xff\n")
    with pytest.raises(sources.SourceError, match="some, byte 9: this is not utf-8"):
        read(sources.lines(path), "some")
    assert records(read(sources.lines(path, encoding="latin-1"), "some")) == ["good", "bad ÿ"]
    path.write_bytes(b'{"a": 1}\n{"a": \n')
    with pytest.raises(sources.SourceError, match="some, the line at byte 9 is not JSON"):
        read(sources.json_lines(path), "some")
    path.write_bytes(b"x,y\n1,2\n3\n")
    with pytest.raises(sources.SourceError, match="some, the record at byte 8 has 1 fields, and there are 2 columns"):
        read(sources.csv(path), "some")
    path.write_bytes(b'x,y\n1,2\n"3,4\n')
    with pytest.raises(sources.SourceError, match="some, the record at byte 8 begins with a quote that never ends"):
        read(sources.csv(path), "some")
    path.write_bytes(b"x,y\n1,two\n")
    with pytest.raises(sources.SourceError, match="record at byte 4: column 'y' cannot be converted"):
        read(sources.csv(path, types={"x": int, "y": int}), "some")
    with pytest.raises(sources.SourceError, match=r"types= names \['z'\]"):
        read(sources.csv(path, types={"z": int}), "some")
    with pytest.raises(sources.SourceError, match="some is not a Parquet file, or not whole"):
        read(sources.parquet(path), "some")


def test_a_file_that_shrank_or_whose_last_line_grew_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(b"one\ntw")
    (*_, (position, _, _)) = read(sources.lines(path), "some")
    assert position == 6
    for grown, rest in ((b"one\ntw\nthree", ["three"]), (b"one\ntw\r\nthree\n", ["three"]), (b"one\ntw", [])):
        path.write_bytes(grown)
        assert records(read(sources.lines(path), "some", position)) == rest
    path.write_bytes(b"one\ntwo\n")
    with pytest.raises(sources.SourceError, match="the last line had no end when it was read, up to byte 6"):
        read(sources.lines(path), "some", position)
    path.write_bytes(b"one\n")
    with pytest.raises(sources.SourceError, match="some has 4 bytes, and 6 have been read"):
        read(sources.lines(path), "some", position)
    path.unlink()
    with pytest.raises(sources.SourceError, match="some is gone, and was read up to byte 6"):
        read(sources.lines(path), "some", position)


def test_marks_at_the_beginning_and_ends_within_quotes(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes('\ufeffx,y\r\n1,"two\r\nlines"\r\n\ufeff,3\r\n'.encode())
    expected = [{"x": "1", "y": "two\r\nlines"}, {"x": "\ufeff", "y": "3"}]
    assert stopped_anywhere(sources.csv(path, 1), "some", sources.csv(path)) == expected
    assert records(read(sources.lines(path, 1), "some"))[:2] == ["x,y", '1,"two']


def test_positions_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "some").write_bytes(b"one\n")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "some.parquet")
    for source, name in (
        (sources.lines(tmp_path / "some"), "some"),
        (sources.parquet(tmp_path / "some.parquet"), "some.parquet"),
        (sources.generator(lambda start: []), "all"),
    ):
        with pytest.raises(sources.SourceError, match="position"):
            read(source, name, "elsewhere")
    with pytest.raises(sources.SourceError, match="has 1 rows, and 5 have been read"):
        read(sources.parquet(tmp_path / "some.parquet"), "some.parquet", 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sources.lines(17), "needs a file, a folder or a pattern"),
        (lambda: sources.lines(""), "needs a file, a folder or a pattern"),
        (lambda: sources.lines("x", batch=0), "batch must be at least 1"),
        (lambda: sources.lines("x", poll=0), "poll must be a positive number"),
        (lambda: sources.lines("x", encoding="utf-16"), "lines cannot be told apart in 'utf-16'"),
        (lambda: sources.lines("x", encoding="klingon"), "there is no encoding 'klingon'"),
        (lambda: sources.csv("x", delimiter="||"), "a delimiter is one character"),
        (lambda: sources.csv("x", columns="ab"), "columns are a list of names"),
        (lambda: sources.parquet("x", columns="ab"), "columns are a list of names"),
        (lambda: sources.restartable(17), "needs a function of a position"),
        (lambda: sources.generator([1, 2]), "needs a function of a number"),
        (lambda: sources.shares(lambda p, q: [], "ab"), "partitions are a list of names"),
    ],
)
def test_wrong_arguments_are_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ConstructionError, match=message):
        make()
