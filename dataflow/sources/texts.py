"""Files of lines: plain text, JSON and CSV. A file is a partition, and a position is a byte of it."""

from __future__ import annotations

import codecs
import csv as csv_module
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import trio

from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.sources.files import Tail, files_at, names_of, tail_of
from dataflow.values import Value

D = TypeVar("D")

Json: TypeAlias = Value
"""What a line of JSON stands for: the user's own values."""


class _Texts(Partitions[D]):
    """What files of lines share."""

    def __init__(self, path: str | os.PathLike[str], batch: int, follow: bool, encoding: str, poll: float) -> None:
        if type(batch) is not int or batch < 1:
            raise ConstructionError(f"batch must be at least 1, not {batch!r}")
        if not poll > 0:
            raise ConstructionError(f"poll must be a positive number of seconds, not {poll!r}")
        try:
            plain = "\n".encode(encoding) == b"\n"
            self._encoding = codecs.lookup(encoding).name
        except LookupError:
            raise ConstructionError(f"there is no encoding {encoding!r}") from None
        if not plain:
            raise ConstructionError(f"lines cannot be told apart in {encoding!r}: convert the files to UTF-8")
        self.follow = follow
        self._files = files_at(path, follow)
        self._batch = batch
        self._poll = poll

    def __repr__(self) -> str:
        return f"<{type(self).__name__.strip('_').lower()} of {self._files.title}>"

    async def partitions(self) -> list[str]:
        """The files."""
        return await names_of(self._files)

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The records of a file."""
        tail = tail_of(self._files, partition, position, self.follow)
        try:
            while lines := await self._more(tail):
                yield tail.offset, None, self._parse(tail, lines)
        finally:
            tail.close()

    async def _more(self, tail: Tail) -> list[bytes]:
        """More lines of a file, some at a time; none at its end. If it is followed, there is none."""
        while True:
            lines = await tail.more(self._batch)
            if lines or not self.follow or tail.whole:
                return lines
            await trio.sleep(self._poll)

    def _parse(self, tail: Tail, lines: list[bytes]) -> list[D]:
        """The records of these lines. `tail` is behind them."""
        raise NotImplementedError

    def _decode(self, path: str, start: int, lines: list[bytes]) -> list[str]:
        """The lines of a file that begin at a byte, without their newlines."""
        data = b"".join(lines)
        try:
            text = data.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{path}, byte {start + error.start}: this is not {self._encoding} ({error.reason}): name the file's "
                "encoding="
            ) from None
        if start == 0:
            text = text.removeprefix("\ufeff")  # the mark that some programs begin a file with
        return text.removesuffix("\n").split("\n")


class _Lines(_Texts[str]):
    """Lines as they are."""

    def _parse(self, tail: Tail, lines: list[bytes]) -> list[str]:
        start = tail.offset - sum(map(len, lines))
        return [line.removesuffix("\r") for line in self._decode(tail.path, start, lines)]


class _JsonLines(_Texts[Json]):
    """Each line is a value; empty ones are passed over."""

    def _parse(self, tail: Tail, lines: list[bytes]) -> list[Json]:
        records: list[Json] = []
        start = tail.offset - sum(map(len, lines))
        for number, line in enumerate(self._decode(tail.path, start, lines)):
            if line and not line.isspace():
                try:
                    records.append(json.loads(line))
                except ValueError as error:
                    at = start + sum(map(len, lines[:number]))
                    raise SourceError(f"{tail.path}, the line at byte {at} is not JSON: {error}") from None
        return records


class _Csv(_Texts[dict[str, Value]]):
    """A record may go over several lines, in quotes: its lines wait for the last of them."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch: int,
        follow: bool,
        encoding: str,
        poll: float,
        columns: Sequence[str] | None,
        types: Mapping[str, Callable[[str], object]],
        delimiter: str,
    ) -> None:
        super().__init__(path, batch, follow, encoding, poll)
        if len(delimiter) != 1:
            raise ConstructionError(f"a delimiter is one character, not {delimiter!r}")
        if isinstance(columns, str):
            raise ConstructionError(f"columns are a list of names, not {columns!r}")
        self._columns = None if columns is None else list(columns)
        self._types = dict(types)
        self._delimiter = delimiter
        if self._columns is not None:
            self._require_types(self._columns)

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[dict[str, Value]]]:
        tail = tail_of(self._files, partition, position, self.follow)
        columns, waiting = self._columns, list[bytes]()
        if columns is None and tail.offset:
            columns = await self._saved_header(partition)
        try:
            while lines := await self._more(tail):
                waiting += lines
                if columns is None:
                    columns = self._header(tail.path, [waiting.pop(0)])
                at = tail.offset - sum(map(len, waiting))
                whole, records = self._records(tail.path, at, columns, waiting)
                behind = at + sum(map(len, waiting[:whole]))
                del waiting[:whole]
                yield behind, None, records
        finally:
            tail.close()
        if waiting:
            at = tail.offset - sum(map(len, waiting))
            raise SourceError(f"{tail.path}, the record at byte {at} begins with a quote that never ends")

    async def _saved_header(self, partition: str) -> list[str]:
        """The columns of a file that is read on in its middle."""
        first = tail_of(self._files, partition, 0, False)
        try:
            return self._header(first.path, await first.more(1))
        finally:
            first.close()

    def _rows(self, path: str, at: int, lines: list[bytes]) -> Iterator[tuple[int, list[str]]]:
        """(lines taken so far, fields) for each record. The last may be unfinished: it is not given."""
        texts = (text + "\n" for text in self._decode(path, at, lines))
        reader = csv_module.reader(texts, delimiter=self._delimiter, strict=True)
        try:
            for fields in reader:
                yield reader.line_num, fields
        except csv_module.Error as error:
            if "unexpected end of data" not in str(error):
                raise SourceError(f"{path}, near byte {at}: this is not CSV: {error}") from None

    def _records(
        self, path: str, at: int, columns: list[str], lines: list[bytes]
    ) -> tuple[int, list[dict[str, Value]]]:
        records, taken = [], 0
        for behind, fields in self._rows(path, at, lines):
            where = f"{path}, the record at byte {at + sum(map(len, lines[:taken]))}"
            if fields:
                if len(fields) != len(columns):
                    raise SourceError(
                        f"{where} has {len(fields)} fields, and there are {len(columns)} columns: {columns}"
                    )
                records.append(self._converted(where, dict(zip(columns, fields, strict=True))))
            taken = behind
        return taken, records

    def _converted(self, where: str, record: dict[str, Value]) -> dict[str, Value]:
        for name, convert in self._types.items():
            try:
                record[name] = convert(record[name])
            except (ValueError, TypeError) as error:
                raise SourceError(f"{where}: column {name!r} cannot be converted: {error}") from None
        return record

    def _header(self, path: str, lines: list[bytes]) -> list[str]:
        """The names in the first line, which must be all of it."""
        found = [fields for _, fields in self._rows(path, 0, lines)]
        if len(found) != 1 or len(set(found[0])) != len(found[0]):
            raise SourceError(f"{path}: its first line must name the columns, each once; or say columns=[...]")
        self._require_types(found[0])
        return found[0]

    def _require_types(self, columns: list[str]) -> None:
        if unknown := [name for name in self._types if name not in columns]:
            raise SourceError(f"{self!r}: types= names {unknown}, and the columns are {columns}")


def lines(
    path: str | os.PathLike[str],
    batch: int = 1000,
    follow: bool = False,
    *,
    encoding: str = "utf-8",
    poll: float = 0.1,
) -> Partitions[str]:
    """The lines of a file, of all files of a folder, or of those that match a pattern, `batch` of them at each time.

    With `follow` the source goes on with what is appended, and with new files; every file is looked at each `poll`
    seconds. Only whole lines count then. A file may grow; one that shrinks is an error. Files that end in .gz, .bz2,
    .xz, .zst or .lz4 are decompressed. A path may be an address in an object store (`s3://bucket/logs/*.gz`); blobs and
    compressed files do not grow, and are read once, to their end.
    """
    return _Lines(path, batch, follow, encoding, poll)


def json_lines(
    path: str | os.PathLike[str],
    batch: int = 1000,
    follow: bool = False,
    *,
    encoding: str = "utf-8",
    poll: float = 0.1,
) -> Partitions[Json]:
    """The values in files that have one in each line, as JSON. See `lines`."""
    return _JsonLines(path, batch, follow, encoding, poll)


def csv(
    path: str | os.PathLike[str],
    batch: int = 1000,
    follow: bool = False,
    *,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Callable[[str], object]] | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
    poll: float = 0.1,
) -> Partitions[dict[str, Value]]:
    """The records of CSV files, as dictionaries of text. See `lines`.

    Each file's first line names the columns, unless `columns` does. `types` has functions that convert the fields of a
    column: `types={"price": int}`.
    """
    return _Csv(path, batch, follow, encoding, poll, columns, types or {}, delimiter)
