"""The process that a task starts on an executor: a supervisor of one worker, as on any other host.

It reads its place and its order from standard input, and writes what it hands back to standard output. It ends with the
task: if Spark kills that, the kernel kills this process, and with it the worker.
"""

from __future__ import annotations

import json
import os
import sys

from dataflow.comm.handshake import Identity
from dataflow.launch.cluster import run_cluster
from dataflow.launch.descent import end_with_parent
from dataflow.launch.hosts import Cluster
from dataflow.spark.order import GuestOrder, ShippedMain
from dataflow.spark.outcome import Handed, encode_handed
from dataflow.spark.phone import Phone, home_digest


def serve(parent: int) -> None:
    """Runs the worker, and hands back what became of it."""
    end_with_parent(parent)
    length = int.from_bytes(sys.stdin.buffer.read(8), "little")
    worker, everyone = json.loads(sys.stdin.buffer.read(length))
    order = GuestOrder.decode(sys.stdin.buffer.read())
    sys.argv[:] = order.argv
    handing = os.fdopen(os.dup(1), "wb")
    phone = Phone(Identity(order.secret, home_digest(len(everyone)), worker), order.home)
    handed = _run(worker, tuple((host, port) for host, port in everyone), order)
    unsent = phone.hang_up()
    with handing:
        handing.write(encode_handed(Handed(handed.results, handed.error, unsent)))
    os._exit(0)  # whatever the program has left running in this process


def _run(worker: int, everyone: tuple[tuple[str, int], ...], order: GuestOrder) -> Handed:
    try:
        cluster = Cluster(everyone, worker, 1, order.secret, listen=everyone[worker][0], wait=order.wait)
        return Handed(run_cluster(ShippedMain(order.parcel), (), cluster, order.settings, order.recovery))
    except BaseException as error:  # the driver raises it
        return Handed(error=error)
