"""The process that a task starts on an executor: a supervisor of one worker, as on any other host.

It reads its place and its order from standard input, and writes what it hands back to standard output. It ends with the
task: if Spark kills that, the kernel kills this process, and with it the worker.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from dataflow.comm.handshake import Identity
from dataflow.launch.cluster import run_cluster
from dataflow.launch.descent import end_with_parent
from dataflow.launch.elastic import ElasticHost
from dataflow.launch.guests import Guest, run_guest
from dataflow.launch.hosts import Cluster
from dataflow.launch.verdict import ByWorker
from dataflow.spark.order import GuestOrder, ShippedMain
from dataflow.spark.outcome import Handed, encode_handed
from dataflow.spark.phone import HOME_DIGEST, Phone

Everyone = tuple[tuple[str, int], ...]
"""Where the guests of a job listen."""


def serve(parent: int) -> None:
    """Runs the worker, and hands back what became of it."""
    end_with_parent(parent)
    length = int.from_bytes(sys.stdin.buffer.read(8), "little")
    place, addresses = json.loads(sys.stdin.buffer.read(length))
    order = GuestOrder.decode(sys.stdin.buffer.read())
    sys.argv[:] = order.argv
    handing = os.fdopen(os.dup(1), "wb")
    number = place if order.join is None else order.join[2] + place
    everyone = tuple((host, port) for host, port in addresses)

    def say(what: str, numbers: Sequence[int], why: str) -> None:
        phone.tell([what, list(numbers), why, *everyone[0]])

    host = ElasticHost(say)
    phone = Phone(Identity(order.secret, HOME_DIGEST, number), order.home, host.cannot)
    if phone.trouble:
        host.cannot_bring = f"only the driver could start more workers, and executors cannot reach it: {phone.trouble}"
    handed = _run(place, everyone, order, host)
    unsent = phone.hang_up()
    with handing:
        handing.write(encode_handed(Handed(handed.results, handed.error, unsent)))
    os._exit(0)  # whatever the program has left running in this process


def _run(place: int, everyone: Everyone, order: GuestOrder, host: ElasticHost) -> Handed:
    try:
        if order.join is None:
            return Handed(_found(place, everyone, order, host))
        return Handed(_join(place, everyone[place], order))
    except BaseException as error:  # the driver raises it
        return Handed(error=error)


def _found(place: int, everyone: Everyone, order: GuestOrder, host: ElasticHost) -> ByWorker:
    """One of those with whom the run begins."""
    cluster = Cluster(everyone, place, 1, order.secret, listen=everyone[place][0], wait=order.wait)
    main = ShippedMain(order.parcel)
    return dict(enumerate(run_cluster(main, (), cluster, order.settings, order.recovery, elastic=host)))


def _join(place: int, here: tuple[str, int], order: GuestOrder) -> ByWorker:
    """One of those who were invited later."""
    assert order.join is not None
    host, port, first = order.join
    guest = Guest((host, port), *here, 1, order.secret, None, order.wait, order.recovery, first + place)
    return run_guest(ShippedMain(order.parcel), (), guest, order.settings)
