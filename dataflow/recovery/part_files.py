"""Part files: pieces of state in Arrow's file format. Pure, but for `store_part` and `fetch_part`.

A row is a piece: the operator, the shard, and the words, which only the operator's store understands. A row without
words says that the shard was empty. Rows are gathered to batches of about a megabyte; a large piece is one of its own,
so that it is copied once, from where it was to the memory that is put into the storage. That memory is used again: 66
MB into fresh memory took 0.27 s on the machine where this was written, and 0.005 s into memory that had been touched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import trio
from numpy.typing import NDArray

from dataflow.build.hooks import Words
from dataflow.recovery.backstage import run_backstage
from dataflow.recovery.direct import pages, touch
from dataflow.recovery.manifest import SavedFile, SavedShards, SnapshotDamaged, folder_of
from dataflow.recovery.storage import NotThere, Storage, Threaded

LIMIT = 8 << 20  # bytes of a file: what is being written and the next one fit into a processor's cache
_GROUP = 1 << 20  # bytes that are gathered before they are written
_ROW = 64  # bytes of a row besides its words and its operator's name, at most
_BATCH = 2048  # bytes of a batch besides its rows, here and in the footer, at most
_FRAME = 8192  # bytes of a file besides its batches, at most


@dataclass(frozen=True, slots=True, eq=False)
class FilledPart:
    """A part file that has been filled, and has no name yet."""

    data: memoryview
    live: dict[str, SavedShards]  # all shards in it, the empty ones with no words
    buffer: NDArray[np.uint8]

    def saved(self, number: int, worker: int) -> SavedFile:
        """Hashes it: what a manifest says of it. About 0.7 s for a gigabyte; other threads may run meanwhile."""
        digest = hashlib.sha256(self.data).hexdigest()
        words = sum(int(saved.words.sum()) for saved in self.live.values())
        return SavedFile(part_name(number, digest), len(self.data), digest, number, worker, words, self.live)


class PartBuffers:
    """Memory for part files, to be used again: one is being filled while another is written."""

    def __init__(self, limit: int = LIMIT, most: int = 2) -> None:
        self.limit = limit
        self.group: Words = np.frombuffer(
            pages(2 * _GROUP), np.uint64
        )  # where pieces lie together before they are written
        self._most = most
        self._free: list[NDArray[np.uint8]] = []

    def get_ready(self) -> None:
        """Touches all of it. For a thread: where memory must come from a host first, that takes a while."""
        touch(self.group.view(np.uint8))
        for _ in range(self._most):
            buffer = pages(self.limit)
            touch(buffer)
            self.give(buffer)

    def take(self, size: int) -> NDArray[np.uint8]:
        """Memory for so many bytes at least."""
        if size > self.limit:
            return np.empty(size, np.uint8)
        return self._free.pop() if self._free else pages(self.limit)

    def give(self, buffer: NDArray[np.uint8]) -> None:
        """Gives memory back, that nobody looks at any more."""
        if len(buffer) == self.limit and len(self._free) < self._most:
            self._free.append(buffer)


class PartWriter:
    """Fills part files. Each `add` gives the files that have become full, `finish` the last one."""

    def __init__(self, buffers: PartBuffers | None = None) -> None:
        self._buffers = buffers or PartBuffers()
        self._group = min(_GROUP, self._buffers.limit // 8)
        self._rows: list[tuple[str, int, Words | None]] = []  # gathered: not yet in the file
        self._gathered = 0  # bytes that they will take at most
        self._placed = 0  # words that were given out of `_buffers.group`
        self._file: _OpenPart | None = None

    def place(self, count: int) -> Words:
        """Memory for so many words of a piece, to be added next: it lies with the others of its batch."""
        group = self._buffers.group
        if self._placed + count > len(group):
            return np.empty(count, np.uint64)
        self._placed += count
        return group[self._placed - count : self._placed]

    def add(self, operator: str, shard: int, pieces: Sequence[Words]) -> list[FilledPart]:
        """Adds all pieces of a shard; none if it is empty. The pieces must not change before `finish`, but for those
        that are in a file which has been given back."""
        full = [part for row in rows_of(pieces) if self.gather(operator, shard, row) for part in self.write()]
        self.end_shard()
        return full

    def gather(self, operator: str, shard: int, piece: Words | None) -> bool:
        """Takes note of a piece, which must not change before `write`; whether that is due."""
        self._rows.append((operator, shard, piece))
        self._gathered += _size(self._rows[-1])
        return self._gathered > self._group // 2

    def end_shard(self) -> None:
        """All pieces of a shard were gathered: if they are written, their memory can be used again."""
        if not self._rows:
            self._placed = 0

    def finish(self) -> list[FilledPart]:
        """Writes what is left. None if nothing was added since the last file."""
        full = self.write()
        if self._file is not None:
            full.append(self._file.close())
            self._file = None
        return full

    def write(self) -> list[FilledPart]:
        """Writes what was gathered as a batch; the last piece is one of its own if that would be large."""
        rows, large = self._rows, self._gathered > self._group
        batches = [rows[:-1], rows[-1:]] if large else [rows]
        self._rows, self._gathered = [], 0
        return [part for batch in batches if batch for part in self._write_batch(batch)]

    def _write_batch(self, rows: list[tuple[str, int, Words | None]]) -> list[FilledPart]:
        """To a new file if it does not fit into the one at hand."""
        full = []
        size = sum(map(_size, rows)) + _BATCH
        if self._file is not None and size > self._file.room:
            full.append(self._file.close())
            self._file = None
        if self._file is None:
            self._file = _OpenPart(self._buffers.take(size + _FRAME))
        self._file.write(rows, size)
        return full


class _OpenPart:
    """A part file that is being filled."""

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        pa = _pyarrow()
        self.room = len(buffer) - _FRAME
        self._words: dict[str, dict[int, int]] = {}
        self._buffer = buffer
        self._sink = pa.FixedSizeBufferWriter(pa.py_buffer(buffer))
        self._schema = _schema()
        self._writer = pa.ipc.new_file(self._sink, self._schema)

    def write(self, rows: list[tuple[str, int, Words | None]], size: int) -> None:
        """Writes a batch that takes at most `size` bytes."""
        pa = _pyarrow()
        pieces = [piece for _, _, piece in rows if piece is not None]
        words = _together(pieces)
        lengths = np.array([0 if piece is None else len(piece) for _, _, piece in rows], np.int64)
        names = [operator.encode() for operator, _, _ in rows]
        texts = [pa.py_buffer(_ends([len(name) for name in names], np.int32)), pa.py_buffer(b"".join(names))]
        shards = pa.py_buffer(np.array([shard for _, shard, _ in rows], np.int64))
        values = pa.Array.from_buffers(pa.uint64(), len(words), [None, pa.py_buffer(words)])
        ends = pa.py_buffer(_ends(lengths, np.int64))
        columns = [  # of buffers: `pa.array` imports pandas, if it is there, and everybody waits for that
            pa.Array.from_buffers(pa.string(), len(rows), [None, *texts]),
            pa.Array.from_buffers(pa.int64(), len(rows), [None, shards]),
            pa.Array.from_buffers(_piece_type(), len(rows), [None, ends], children=[values]),
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
        self.room -= size
        for (operator, shard, _), length in zip(rows, lengths.tolist(), strict=True):
            of_operator = self._words.setdefault(operator, {})
            of_operator[shard] = of_operator.get(shard, 0) + length

    def close(self) -> FilledPart:
        """Ends the file."""
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        live = {operator: SavedShards.of(words) for operator, words in self._words.items()}
        return FilledPart(self._buffer.data[:size], live, self._buffer)


def _size(row: tuple[str, int, Words | None]) -> int:
    """Bytes that a row will take at most."""
    operator, _, piece = row
    return _ROW + len(operator.encode()) + (0 if piece is None else piece.nbytes)


def rows_of(pieces: Sequence[Words]) -> Iterable[Words | None]:
    """What is written of a shard: its pieces, or a row that says that it has none."""
    return pieces or (None,)


def _ends(lengths: Sequence[int] | NDArray[np.int64], kind: type[np.int32 | np.int64]) -> NDArray[np.signedinteger]:
    """Where each of several things of these lengths begins, and the last one ends."""
    ends = np.zeros(len(lengths) + 1, kind)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _together(pieces: Sequence[Words]) -> Words:
    """Pieces as one array: as they lie, if they lie one behind the other."""
    if len(pieces) == 1:
        return np.ascontiguousarray(pieces[0], np.uint64)
    ends = {piece.ctypes.data + piece.nbytes for piece in pieces[:-1]}
    if pieces and len(ends) == len(pieces) - 1 and all(piece.ctypes.data in ends for piece in pieces[1:]):
        base = pieces[0].base
        if isinstance(base, np.ndarray) and base.dtype == np.uint64 and all(piece.base is base for piece in pieces):
            first = (pieces[0].ctypes.data - base.ctypes.data) // 8
            return base[first : first + sum(map(len, pieces))]
    return np.concatenate([np.empty(0, np.uint64), *pieces])


def part_name(number: int, digest: str) -> str:
    """The name of a part file: the snapshot that it is for, and what is in it. The number says whether a file that no
    manifest names is left over, or belongs to a snapshot that is being made (M4)."""
    return f"part-{number:010d}-{digest}.arrow"


def read_part(data: bytes | memoryview, title: str = "a part file") -> Iterator[tuple[str, int, Words]]:
    """(operator, shard, words) for each piece in a part file, without copying: the words are views of `data`.
    SnapshotDamaged if it is none."""
    for batch in _batches(data, title):
        bounds = batch.offsets.tolist()
        for at, (operator, shard) in enumerate(zip(batch.operators, batch.shards, strict=True)):
            if bounds[at] < bounds[at + 1]:
                yield operator, shard, batch.words[bounds[at] : bounds[at + 1]]


def read_directory(data: bytes | memoryview, title: str = "a part file") -> dict[str, SavedShards]:
    """By operator, the shards in a part file, the empty ones included. Does not look at the pieces."""
    words: dict[str, dict[int, int]] = {}
    for batch in _batches(data, title):
        lengths = np.diff(batch.offsets).tolist()
        for operator, shard, length in zip(batch.operators, batch.shards, lengths, strict=True):
            of_operator = words.setdefault(operator, {})
            of_operator[shard] = of_operator.get(shard, 0) + length
    return {operator: SavedShards.of(lengths) for operator, lengths in words.items()}


def live_pieces(file: SavedFile, data: bytes | memoryview) -> Iterator[tuple[str, int, Words]]:
    """The pieces of the live shards of a file that has been verified (`fetch_part` does). SnapshotDamaged if they are
    not as the manifest says."""
    expected = {operator: saved.as_dict() for operator, saved in file.live.items()}
    for operator, shard, words in read_part(data, file.name):
        if shard in expected.get(operator, ()):
            expected[operator][shard] -= len(words)
            yield operator, shard, words
    wrong = [f"{operator!r} {shard}" for operator, left in expected.items() for shard, n in left.items() if n]
    if wrong:
        raise SnapshotDamaged(f"{file.name} has other state than the manifest says, of {', '.join(wrong[:3])}")


async def store_part(
    storage: Storage, dataflow: str, part: FilledPart, number: int, worker: int, buffers: PartBuffers
) -> SavedFile:
    """Hashes a part, puts it and gives its memory back. `number`: of the manifest that will name it."""
    if isinstance(storage, Threaded):
        saved = await run_backstage(part.saved, number, worker)
    else:
        saved = part.saved(number, worker)
    await storage.put(f"{folder_of(dataflow)}/{saved.name}", part.data)
    buffers.give(part.buffer)
    return saved


async def fetch_part(storage: Storage, dataflow: str, file: SavedFile) -> bytes | memoryview:
    """A part file, whose checksum is right; SnapshotDamaged if it is not, or if there is none."""
    name = f"{folder_of(dataflow)}/{file.name}"
    try:
        data = await storage.get_large(name) if isinstance(storage, Threaded) else await storage.get(name)
    except NotThere:
        raise SnapshotDamaged(f"{file.name} is missing in {storage.title}") from None
    if len(data) != file.size:
        raise SnapshotDamaged(f"{file.name} in {storage.title} has {len(data)} bytes, and had {file.size}")
    if isinstance(storage, Threaded):
        digest = await trio.to_thread.run_sync(_digest, data)
    else:
        digest = _digest(data)
    if digest != file.sha256:
        raise SnapshotDamaged(f"{file.name} in {storage.title} was altered: its checksum is wrong")
    return data


N = TypeVar("N", bound=np.generic)


class _ArrowArray(Protocol):
    """What is used of Arrow's arrays."""

    offset: int

    def __len__(self) -> int: ...

    def buffers(self) -> list[memoryview]: ...


class _Batch(NamedTuple):
    operators: list[str]
    shards: list[int]
    offsets: NDArray[np.int64]  # where each piece begins, and the last one ends
    words: Words


def _batches(data: bytes | memoryview, title: str) -> Iterator[_Batch]:
    """The batches of a file; SnapshotDamaged if that is not what is there. The words are not looked at."""
    pa = _pyarrow()
    try:
        reader = pa.ipc.open_file(pa.py_buffer(data))
        if reader.schema != _schema():
            raise SnapshotDamaged(f"{title} has other columns than a part file has")
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate(full=True)  # offsets that point elsewhere would be read as state
            operators, shards, pieces = batch.columns
            if operators.null_count or shards.null_count or pieces.null_count or pieces.values.null_count:
                raise SnapshotDamaged(f"{title} has gaps")
            yield _Batch(
                operators.to_pylist(), shards.to_pylist(), _numbers(pieces.offsets, np.int64),
                _numbers(pieces.values, np.uint64),
            )  # fmt: skip
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SnapshotDamaged(f"{title} is no part file: {error}") from None


def _numbers(array: _ArrowArray, kind: type[N]) -> NDArray[N]:
    """An array without gaps as it lies: `to_numpy` imports pandas, if it is there."""
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[-1], kind, len(array), array.offset * np.dtype(kind).itemsize)


def _schema() -> object:
    pa = _pyarrow()
    fields = [("operator", pa.string()), ("shard", pa.int64()), ("piece", _piece_type())]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])


def _piece_type() -> object:
    pa = _pyarrow()
    return pa.large_list(pa.field("item", pa.uint64(), nullable=False))


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def load_format() -> None:
    """Imports what writing and reading part files takes: some tenths of a second, which a stream should not wait."""
    _pyarrow()


def _pyarrow() -> ModuleType:
    import pyarrow
    import pyarrow.ipc

    module: ModuleType = pyarrow
    return module
