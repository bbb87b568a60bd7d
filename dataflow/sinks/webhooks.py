"""Webhooks: records are sent to others by HTTP, at least once."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping

from dataflow.channels.pact import Batch, Pact, ToWorker
from dataflow.clients.extras import require_number
from dataflow.clients.http import HttpError, Posting, WebAddress, shown
from dataflow.clients.payloads import Encode, Payloads
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import AtLeastOnce, Place, SinkError, SinkUnavailable, Writer
from dataflow.sinks.queues import Message, QueueWriter, Shipment

_PAUSE, _LONGEST = 0.1, 10.0  # seconds between attempts: at first, and at most


class _Webhook(AtLeastOnce):
    """One worker sends, so that requests come in the order of times."""

    def __init__(
        self, url: str, encode: Encode | None, headers: Mapping[str, str], patience: float, batch: int
    ) -> None:
        self.url = url
        self.encode = encode
        self.headers = dict(headers)
        self.patience = patience
        self.batch = batch

    def __repr__(self) -> str:
        return f"<webhook to {shown(self.url)}>"

    def route(self) -> Pact:
        """Everything goes to worker 0."""
        return ToWorker(0)

    def open(self, place: Place) -> Writer:
        """A writer; it connects when there is something to send."""
        return _WebhookWriter(self, place)


class _WebhookWriter(QueueWriter):
    """Each request has a name, which is the same when it is sent again: a receiver that remembers names has each record
    once."""

    def __init__(self, sink: _Webhook, place: Place) -> None:
        super().__init__(place)
        self._sink = sink
        self._payloads = Payloads(repr(sink), sink.encode)
        headers = {"content-type": "application/json", **sink.headers}
        self._posting = Posting(sink.url, headers, sink.patience)

    def close(self) -> None:
        self._posting.close()

    def encode(self, batch: Batch) -> list[Message]:
        return list(self._payloads.of(batch))

    async def send(self, shipments: list[Shipment]) -> None:
        await self.place.away(lambda: self._send(shipments))

    def _send(self, shipments: list[Shipment]) -> None:
        for shipment in shipments:
            bodies = [body for body in shipment.messages if isinstance(body, bytes)]
            for first in range(0, len(bodies), self._sink.batch):
                some = bodies[first : first + self._sink.batch]
                body = some[0] if self._sink.batch == 1 else b"[" + b",".join(some) + b"]"
                self._post(shipment.name(first), body)

    def _post(self, name: str, body: bytes) -> None:
        """Sends a request until it is taken."""
        deadline, pause = clock.monotonic() + self._sink.patience, _PAUSE
        while True:
            try:
                status = self._posting.post(body, {"idempotency-key": name})
                why = f"it answers with status {status}"
            except HttpError as error:
                status, why = 0, str(error)
            if 200 <= status < 300:
                return
            if status and status not in (408, 425, 429) and status < 500:
                raise SinkError(f"{self._sink!r} does not take what it is sent: {why}")
            if clock.monotonic() + pause > deadline:
                raise SinkUnavailable(f"{self._sink!r} cannot be reached: {why}")
            clock.sleep(pause)
            pause = min(2 * pause, _LONGEST)


def webhook(
    url: str,
    *,
    encode: Encode | None = None,
    batch: int = 1,
    headers: Mapping[str, str] | None = None,
    patience: float = 30.0,
) -> AtLeastOnce:
    """POSTs each record to an address, in the order of times, from one worker: when a snapshot that has it is durable;
    without recovery, when its time is complete.

    At least once: after a crash, requests of the last snapshot may come again. Each has an `Idempotency-Key`, which is
    the same then: a receiver that passes over keys that it knows has each record once. `encode` makes a body (JSON
    unless you say); with `batch` more than 1, a body is a JSON array of so many records. What is not taken (status 429
    or 5xx, no answer) is sent again for `patience` seconds; other refusals end the run.
    """
    try:
        WebAddress.parse(url)
    except ValueError as error:
        raise ConstructionError(f"sinks.webhook: {error}") from None
    require_number("sinks.webhook", "batch", batch, 1, whole=True)
    require_number("sinks.webhook", "patience", patience)
    return _Webhook(url, encode, headers or {}, patience, batch)
