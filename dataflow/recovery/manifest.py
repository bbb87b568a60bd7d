"""A manifest: what a snapshot consists of. Pure.

A manifest is complete in itself: it names every file that state is in, and in each file the shards that are *live*
there, that is, of which no later file has a newer copy. So nobody needs the manifests before it, and a file with no
live shards is not named any more. `dataflow.recovery.format` has manifests as bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

import dataflow.comm.columns  # noqa: F401  # batches are values, too: what is delayed, and what a sink has to show
from dataflow.comm import codec
from dataflow.errors import DataflowError

FORMAT = 1
"""The version of the format that this library writes. It reads this one and all before it."""

_PLAIN = re.compile(r"[A-Za-z0-9_.-]")


class SnapshotDamaged(DataflowError):
    """Something of a snapshot is missing, torn or altered."""


class SnapshotTooNew(SnapshotDamaged):
    """A snapshot in a format that a newer version of this library wrote."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedShards:
    """Shards of one operator in one file."""

    shards: NDArray[np.int64]  # invariant: ascending, none twice
    words: NDArray[np.int64]  # of each, how many words of state; 0: it was empty

    @classmethod
    def of(cls, words: Mapping[int, int]) -> SavedShards:
        """From a mapping of shards to words."""
        shards = sorted(words)
        return cls(np.array(shards, np.int64), np.array([words[shard] for shard in shards], np.int64))

    def only(self, kept: NDArray[np.bool_]) -> SavedShards:
        """Those at which there is a True."""
        return SavedShards(self.shards[kept], self.words[kept])

    def as_dict(self) -> dict[int, int]:
        """By shard, its words."""
        return dict(zip(self.shards.tolist(), self.words.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.shards)


@dataclass(frozen=True, slots=True, eq=False)
class SavedFile:
    """A part file. In a manifest `live` has the live shards alone; in a part, all shards of the file, the empty ones
    included, which say that older files have nothing live of them."""

    name: str  # under the folder of the dataflow
    size: int  # bytes
    sha256: str
    number: int  # of the snapshot that it was written for
    worker: int  # that wrote it
    words: int  # of state, when it was written
    live: Mapping[str, SavedShards]  # by operator

    @property
    def live_words(self) -> int:
        """How many of its words are live."""
        return sum(int(saved.words.sum()) for saved in self.live.values())


@dataclass(frozen=True, slots=True)
class SavedOperator:
    """An operator whose shards are in the files."""

    description: Mapping[str, str]  # see `dataflow.build.hooks.Durable.describe`
    shards: int


Encoded = Mapping[str, Mapping[int, bytes]]
"""By participant and worker, a value as `dataflow.comm.codec` has it: the process that reads a manifest need not know
the program's classes, and does not decode them."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot, or the claim of a run that has made none yet.

    `time` is None as long as there is nothing to go on from: then everything starts from the beginning.
    """

    dataflow: str
    number: int
    incarnation: int
    time: int | None
    created: float  # wall clock, in seconds since 1970; for people
    workers: int
    final: bool = False
    graph: str = ""  # a digest or a description of the program's graph
    operators: Mapping[str, SavedOperator] = field(default_factory=dict)
    files: tuple[SavedFile, ...] = ()
    shares: Encoded = field(default_factory=dict)
    tokens: Encoded = field(default_factory=dict)
    previous: int | None = None  # the number of the snapshot that this one follows; of a claim, the one it repeats
    origin: str = ""  # the savepoint that this line of manifests began with
    format: int = FORMAT
    members: tuple[int, ...] = ()  # the numbers of the workers; none in snapshots from before they could change

    @property
    def is_claim(self) -> bool:
        """Whether a run has put this when it began: it repeats a snapshot, or is empty."""
        return self.number == self.incarnation

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    def share_values(self, participant: str) -> dict[int, object]:
        """By worker, a participant's plain share."""
        return self._values(self.shares, participant, "share")

    def token_values(self, participant: str) -> dict[int, object]:
        """By worker, a participant's token."""
        return self._values(self.tokens, participant, "token")

    def _values(self, encoded: Encoded, participant: str, what: str) -> dict[int, object]:
        values = {}
        for worker, data in encoded.get(participant, {}).items():
            try:
                values[worker] = codec.decode(data)
            except ValueError as error:
                raise SnapshotDamaged(
                    f"the {what} of {participant!r} on worker {worker} in snapshot {self.number} cannot be read: "
                    f"{error}"
                ) from None
        return values

    def where(self, operator: str) -> list[tuple[SavedFile, SavedShards]]:
        """The files that have live shards of an operator, and which."""
        return [(file, file.live[operator]) for file in self.files if operator in file.live]


def follow(
    previous: Manifest,
    *,
    time: int,
    created: float,
    workers: int,
    members: tuple[int, ...] = (),
    graph: str,
    operators: Mapping[str, SavedOperator],
    files: Iterable[SavedFile],
    shares: Encoded,
    tokens: Encoded,
    final: bool = False,
) -> Manifest:
    """The manifest after another: of the files before, what is live still, and new files. State of operators that are
    not in `operators` is left out."""
    merged = merge_files(previous.files, files, operators)
    return Manifest(
        previous.dataflow, previous.number + 1, previous.incarnation, time, created, workers, final, graph,
        dict(operators), merged, shares, tokens, previous.number, previous.origin, members=members,
    )  # fmt: skip


def merge_files(
    before: Iterable[SavedFile], new: Iterable[SavedFile], operators: Collection[str] | None = None
) -> tuple[SavedFile, ...]:
    """Files of a manifest, and those of the next snapshot, with what is live in each. The newest wins: a shard is live
    in the new files that have it, and else where it was. O(shards)."""
    new = tuple(new)
    renewed: dict[str, NDArray[np.int64]] = {}
    for operator in {operator for file in new for operator in file.live}:
        some = [file.live[operator].shards for file in new if operator in file.live]
        renewed[operator] = np.unique(np.concatenate(some))
    merged = []
    for file in before:
        live = {
            operator: saved.only(~np.isin(saved.shards, renewed[operator])) if operator in renewed else saved
            for operator, saved in file.live.items()
        }
        merged.append(replace(file, live=live))
    for file in new:
        live = {operator: saved.only(saved.words > 0) for operator, saved in file.live.items()}
        merged.append(replace(file, live=live))
    return tuple(filter(None, (_with_live(file, operators) for file in merged)))


def _with_live(file: SavedFile, operators: Collection[str] | None) -> SavedFile | None:
    live = {
        operator: saved
        for operator, saved in file.live.items()
        if len(saved) and (operators is None or operator in operators)
    }
    return replace(file, live=live) if live else None


def stale_shards(manifest: Manifest, share: float = 1 / 3, most: int = 256) -> dict[str, NDArray[np.int64]]:
    """By operator, the shards that should be written again with the next snapshot, so that old files can go: those in
    files of which less than `share` is live, and in the smallest ones of more than `most` files."""
    stale = {file.name for file in manifest.files if file.live_words < share * file.words}
    left = sorted((file for file in manifest.files if file.name not in stale), key=lambda file: file.live_words)
    stale.update(file.name for file in left[: max(0, len(left) - most)])
    found: dict[str, list[NDArray[np.int64]]] = {}
    for file in manifest.files:
        if file.name in stale:
            for operator, saved in file.live.items():
                found.setdefault(operator, []).append(saved.shards)
    return {operator: np.unique(np.concatenate(some)) for operator, some in found.items()}


def folder_of(dataflow: str) -> str:
    """The folder of a dataflow in a storage: its name, with plain characters as they are and others by their codes.

    >>> folder_of("dataflow-0"), folder_of("a/b é"), folder_of("..")
    ('dataflow-0', 'a=2Fb=20=C3=A9', '=2E=2E')
    """
    codes = [chr(c) if _PLAIN.match(chr(c)) else f"={c:02X}" for c in dataflow.encode("utf-8", "surrogatepass")]
    return "".join(codes).replace(".", "=2E") if dataflow.startswith(".") else "".join(codes) or "="


def dataflow_in(folder: str) -> str:
    """The name of the dataflow that a folder belongs to.

    >>> dataflow_in("a=2Fb=20=C3=A9"), dataflow_in("no=XX")
    ('a/b é', 'no=XX')
    """
    data = re.sub(rb"=([0-9A-F]{2})", lambda code: bytes.fromhex(code[1].decode()), folder.encode())
    name = "" if folder == "=" else data.decode("utf-8", "replace")
    return name if folder_of(name) == folder else folder
