"""Tables of databases: the parts that do not depend on which database it is.

Rows are *staged* in a table beside the target, under a token. To commit is one transaction: staged rows move to the
target, and the token and its time are noted in `_dataflow_commits`. So a commit can be repeated, by anybody: a token
whose rows are gone has been committed, and its note says so. A writer of an older incarnation stages under tokens of
its own, which nobody commits unless its snapshot is the one that counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from dataflow.channels.pact import Batch
from dataflow.operators.sinks import Place, SinkError, SinkUnavailable, Writer
from dataflow.sinks.shape import Row, TableShape
from dataflow.time.order import Time

COMMITS = "_dataflow_commits"
STAGED = "_dataflow_staged_"
_STAGE_AT = 50_000  # rows in memory: as many are staged before they are asked for
_MOST = 8 * _STAGE_AT  # rows in memory: while there are as many, no more are taken


@dataclass(frozen=True)
class StagedRows:
    """Rows that were staged under one token."""

    token: str
    rows: int
    time: int  # all of them are before this

    @property
    def place(self) -> tuple[str, int]:
        """Which writer staged it, and as which of its tokens."""
        writer, _, number = self.token.rpartition("-")
        return writer, int(number)

    @staticmethod
    def several(token: object) -> list[StagedRows]:
        """What a token for snapshots stands for."""
        if not isinstance(token, list):
            raise SinkError(f"{token!r} is no token of a table")
        return [StagedRows(str(name), int(rows), int(time)) for name, rows, time in token]


class UnstagedRows:
    """Rows in the order in which they came; with a key, of each key the last: nobody will ever see the others."""

    def __init__(self, shape: TableShape) -> None:
        self._key = shape.key_of
        self._rows: list[Row] = []
        self._by_key: dict[object, Row] = {}

    def add(self, rows: list[Row]) -> None:
        """Adds rows. O(rows)."""
        if self._key is None:
            self._rows += rows
            return
        last, key = self._by_key, self._key
        for row in rows:
            name = key(row)
            last.pop(name, None)  # so that it comes last, as it came
            last[name] = row

    def list(self) -> list[Row]:
        """What is left of them."""
        return [*self._rows, *self._by_key.values()]

    def __len__(self) -> int:
        return len(self._rows) + len(self._by_key)


class TableWriter(Writer):
    """Writes rows to a table. Everything that blocks is done away from the engine."""

    def __init__(self, shape: TableShape, table: str, place: Place) -> None:
        self.shape = shape
        self.table = table
        self.place = place
        self._writer = f"{place.incarnation}-{uuid4().hex[:12]}-{place.worker}"
        self._number = 0  # of tokens
        self._rows = UnstagedRows(shape)  # not staged yet
        self._stage_at = _STAGE_AT  # rows in memory
        self._staged = 0  # rows under the current token
        self._prepared: list[StagedRows] = []  # and not committed

    @property
    def _token(self) -> str:
        return f"{self._writer}-{self._number}"

    async def write(self, time: Time, batch: Batch) -> None:
        rows = self.convert(self.shape.checked_rows(batch))
        if len(self._rows) >= self._stage_at:
            try:
                await self.place.away(self._stage)
                self._stage_at = _STAGE_AT
            except SinkUnavailable:  # `prepare` tries again, and tells; or the next call, when there are many
                if len(self._rows) >= _MOST:
                    raise
                self._stage_at = 2 * len(self._rows)
        self._rows.add(rows)

    async def prepare(self, time: Time) -> object:
        if self._rows:
            await self.place.away(self._stage)
            self._stage_at = _STAGE_AT
        if self._staged:
            self._prepared.append(StagedRows(self._token, self._staged, time))
            self._number += 1
            self._staged = 0
        return [[stage.token, stage.rows, stage.time] for stage in self._prepared] or None

    async def commit(self, token: object) -> None:
        stages = StagedRows.several(token)
        await self.place.away(lambda: self.publish(stages))
        done = {stage.token for stage in stages}
        self._prepared = [stage for stage in self._prepared if stage.token not in done]

    async def recover(self, tokens: Sequence[object]) -> None:
        stages = [stage for token in tokens for stage in StagedRows.several(token)]
        await self.place.away(lambda: self._recover(stages))

    def _recover(self, stages: list[StagedRows]) -> None:
        self.publish(stages)
        self.sweep(self.place.incarnation, [stage.token for stage in stages])

    def _stage(self) -> None:
        rows = self._rows.list()
        self.stage(self._token, self._staged, rows)
        self._staged += len(rows)
        self._rows = UnstagedRows(self.shape)

    def uncommitted(self, stages: list[StagedRows], noted: Iterable[str]) -> list[StagedRows]:
        """Those that the notes do not have. A writer's last note stands for all of its tokens before."""
        last: dict[str, int] = {}
        for token in noted:
            writer, number = StagedRows(token, 0, 0).place
            last[writer] = max(last.get(writer, -1), number)
        return [stage for stage in stages if stage.place[1] > last.get(stage.place[0], -1)]

    def lost(self, stage: StagedRows, found: int) -> SinkError:
        """What is wrong when rows are not where they were staged, and were not committed either."""
        return SinkError(
            f"{self.shape.title}: {stage.rows} rows before time {stage.time} were staged for it and {found} are there: "
            "the table or its database was replaced since the last snapshot. Bring it back, or start afresh with both"
        )

    # What databases differ in

    @abstractmethod
    def convert(self, rows: list[Row]) -> list[Row]:
        """Rows of values that the database knows; SinkError for others."""

    @abstractmethod
    def stage(self, token: str, first: int, rows: list[Row]) -> None:
        """Stages rows under a token, numbered from `first`, durably."""

    @abstractmethod
    def publish(self, stages: list[StagedRows]) -> None:
        """In one transaction, moves staged rows to the table, in order, and notes their tokens. Those that are noted
        are passed over; those that are not, and whose rows are not there, are `lost`."""

    @abstractmethod
    def sweep(self, before: int, committed: list[str]) -> None:
        """Removes rows that were staged before an incarnation, and notes from before it of other tokens than these.
        What later ones have staged stays: this one may be a zombie that has not noticed it."""
