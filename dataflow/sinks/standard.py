"""Standard output: lines, at least once."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dataflow.channels.pact import Batch, Pact, ToWorker
from dataflow.clients.payloads import Encode, Payloads
from dataflow.operators.sinks import AtLeastOnce, Place, Writer
from dataflow.time.order import Time


class _Stdout(AtLeastOnce):
    """One worker prints, so that lines come in the order of times."""

    def __init__(self, encode: Encode | None) -> None:
        self.encode = encode

    def __repr__(self) -> str:
        return "<standard output>"

    def route(self) -> Pact:
        """Everything goes to worker 0."""
        return ToWorker(0)

    def open(self, place: Place) -> Writer:
        """A writer."""
        return _StdoutWriter(self)


class _StdoutWriter(Writer):
    def __init__(self, sink: _Stdout) -> None:
        self._payloads = Payloads(repr(sink), sink.encode)

    async def write(self, time: Time, batch: Batch) -> None:
        for line in self._payloads.of(batch):
            sys.stdout.write(f"{line.decode()}\n")
        sys.stdout.flush()

    async def prepare(self, time: Time) -> object:
        return None

    async def commit(self, token: object) -> None:
        """Nothing waits."""

    async def recover(self, tokens: Sequence[object]) -> None:
        """Nothing was prepared."""


def stdout(encode: Encode | None = None) -> AtLeastOnce:
    """Prints each record as a line when its time is complete, in the order of times: in JSON, unless `encode` says
    otherwise. After a crash, what came since the last snapshot is printed again."""
    return _Stdout(encode)
