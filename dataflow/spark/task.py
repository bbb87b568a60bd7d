"""What runs in Spark's Python process on an executor: unpacks the packages, finds the others, and starts the guest.

Spark pickles this module by value: the packages are not there yet when it is read. So it imports nothing of ours, and
all that it needs comes in as arguments. A guest that fails does not fail the task, or Spark would throw away what the
others have to say: what became of it is a row, like a result.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import RecordBatch

SCHEMA = "task int, outcome binary, died string"
PORTS_EACH = 2  # of the supervisor, and of its worker
_TRIES = 200

_CODE = """\
import sys
parent, *sys.path = sys.argv[1:]
try:
    from dataflow.spark.guest import serve
except ImportError as error:
    sys.exit(f"{sys.executable} cannot load the engine: {error}")
serve(int(parent))
"""


def make_task(
    order: bytes, archive: bytes, digest: str, ports: tuple[int, int], again: int
) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    """The function of a barrier stage. `order`: what all guests are told. `archive`: the packages, zipped; `digest` is
    their name. `ports`: from which to which guests may listen. `again`: how often a guest that is killed is started
    again."""

    def task(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow
        from pyspark import BarrierTaskContext

        for _ in batches:
            pass
        context = BarrierTaskContext.get()
        place = context.partitionId()
        host = context.getTaskInfos()[place].address.rpartition(":")[0]
        folder = unpack(archive, digest)
        first, held = hold_ports(host, *ports)
        everyone = [json.loads(told) for told in context.allGather(json.dumps([host, first]))]
        for each in held:
            each.close()
        outcome, died = run_guest(folder, json.dumps([place, everyone]).encode(), order, again)
        names = ["task", "outcome", "died"]
        kinds = [pyarrow.int32(), pyarrow.binary(), pyarrow.string()]
        columns = [pyarrow.array([value], kind) for value, kind in zip((place, outcome, died), kinds, strict=True)]
        yield pyarrow.RecordBatch.from_arrays(columns, names)

    return task


def unpack(archive: bytes, digest: str) -> str:
    """The folder with the packages, which is unpacked once on each executor. Spark deletes it with its own."""
    base = (os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()).split(",")[0]
    folder = os.path.join(base, f"dataflow-{digest}")
    if os.path.isdir(folder):
        return folder
    os.makedirs(base, exist_ok=True)
    aside = tempfile.mkdtemp(dir=base)
    with zipfile.ZipFile(io.BytesIO(archive)) as packages:
        packages.extractall(aside)
    try:
        os.rename(aside, folder)
    except OSError:  # another task of this executor was faster
        shutil.rmtree(aside)
    return folder


def hold_ports(host: str, low: int, high: int) -> tuple[int, list[socket.socket]]:
    """The first of consecutive ports that are free on this host, and sockets that keep them until the guest takes
    them."""
    trouble: OSError | None = None
    for _ in range(_TRIES):
        first = random.randrange(low, high - PORTS_EACH + 1)
        held: list[socket.socket] = []
        try:
            for port in range(first, first + PORTS_EACH):
                family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
                held.append(socket.socket(family, kind, proto))
                held[-1].bind(address)
            return first, held
        except OSError as error:
            trouble = error
            for each in held:
                each.close()
    raise OSError(f"no {PORTS_EACH} ports in a row are free on {host} between {low} and {high}: {trouble}")


def run_guest(folder: str, place: bytes, order: bytes, again: int) -> tuple[bytes | None, str | None]:
    """Runs a guest to its end: what it hands back, or how it died. One that is killed is started again, so often."""
    told = len(place).to_bytes(8, "little") + place + order
    while True:
        command = [sys.executable, "-P", "-c", _CODE, str(os.getpid()), folder, *sys.path]
        with tempfile.TemporaryFile() as errors:
            guest = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
            outcome, _ = guest.communicate(told)
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4000))
            said = errors.read().decode("utf-8", "backslashreplace").strip()
        if said:
            print(said, file=sys.stderr)  # the executor's log
        if guest.returncode == 0:
            return outcome, None
        if guest.returncode > 0 or not again:
            how = f"signal {-guest.returncode}" if guest.returncode < 0 else f"exit status {guest.returncode}"
            return None, f"its process on {socket.gethostname()} ended with {how}{': ' if said else ''}{said}"
        again -= 1
