"""What a table costs: memory follows the data and not the number of bins, and goes when the data goes.

Measured in a process of its own, whose memory nobody else changes.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, numpy as np
from dataflow.state.tables.pending import Pending
from dataflow.state.tables.table import HashTable, DenseTable
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) >> 10
HashTable(2, {"n": "i8"}).rows(np.arange(5, dtype=np.uint64))  # whatever is imported first is not counted
Pending(2, {}).add(np.zeros(2, np.uint64), np.zeros(1, np.int64))
steps = [resident()]
few = HashTable(1 << 20, {"n": "i8"})
few["n"][few.rows(np.arange(5, dtype=np.uint64))] = 1
steps.append(resident())
queue = Pending(1 << 20, {})
queue.add(np.array([5, 1], np.uint64), np.array([77]))
steps.append(resident())
many = HashTable(16, {"n": "i8"})
many["n"][many.rows(np.arange(2_000_000, dtype=np.uint64))] = 1
steps.append(resident())
room = int(many.segments.sizes.sum()) >> 20
for bin in range(8):
    many.segments.clear(bin)
many.segments.let_go()  # what else a thread does after some seconds
steps.append(resident())
for bin in range(8, 16):
    many.segments.clear(bin)
many.segments.let_go()
steps.append(resident())
many["n"][many.rows(np.arange(2_000_000, dtype=np.uint64))] = 1
steps.append(resident())
print(json.dumps([*steps, room]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what memory is resident")
def test_memory_follows_the_data() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    start, few, queue, full, half, none, again, room = json.loads(done.stdout)
    assert few - start < 20, "5 keys in 2^20 bins, in MB: a large page each, at most, where their bins are described"
    assert queue - few < 40, "one record in 2^20 bins: 16 MB of tree, 8 MB of scratch"
    assert full - queue < 6 * 32, "32 MB of rows, room to grow, and the segments that were outgrown"
    assert full - half > 0.9 * room / 2 and half - none > 0.9 * room / 2, "the bins that leave take their memory along"
    assert again < full + 0.2 * room, "what was given back is used again"
