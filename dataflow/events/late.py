"""What becomes of late records: an error, a stream of them, or a number that is told."""

from __future__ import annotations

import sys
from typing import Literal, TypeAlias

from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError, TimeError
from dataflow.events.moments import Moments
from dataflow.values import Record

Late: TypeAlias = Literal["error", "stream", "count"]


class LateRecords:
    """Counts late records, and says what is to be sent of them."""

    def __init__(self, name: str, late: Late, delay: object, times: Moments) -> None:
        if late not in ("error", "stream", "count"):
            raise ConstructionError(f"{name}: late is 'error', 'stream' or 'count', not {late!r}")
        self._name = name
        self._late = late
        self._delay = delay
        self._times = times
        self.count = 0
        self._worst = 0

    def out(self, batch: list[Record] | Columns, by: int, reached: int) -> list[Record] | Columns:
        """What the stream of late records gets for some that came `by` too late at most, when the rest was at
        `reached`."""
        if self._late == "error":
            first = batch.rows()[0] if isinstance(batch, Columns) else batch[0]
            error = TimeError(
                f"{self._name}: {len(batch)} records came late, by up to {self._times.length(by)}: what can still come "
                f"is at {self._times.at(reached)} or later. Give a longer delay= than {self._delay!r}, or say what "
                "becomes of late records: late='stream' or late='count'"
            )
            error.add_note(f"the first: {first!r}")
            raise error
        self.count += len(batch)
        self._worst = max(self._worst, by)
        return batch if self._late == "stream" else [len(batch)]

    def tell(self) -> None:
        """Says at the end how many there were, if nobody gets them."""
        if self.count and self._late == "count":
            worst = self._times.length(self._worst)
            print(f"{self._name}: {self.count} late records were left out, late by up to {worst}", file=sys.stderr)
