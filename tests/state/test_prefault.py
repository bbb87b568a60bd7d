"""Memory is touched ahead of its use without being changed; bins do not all grow at once."""

import gc
import mmap
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from dataflow.state.memory import allocation, prefault
from dataflow.state.memory.segments import Segments
from dataflow.state.tables.table import HashTable

MIB = 1 << 20


def touched(given_bytes: int, size: int, words: np.ndarray) -> int:  # type: ignore[type-arg]
    """Lets it run once over an array, to keep four megabytes ready; how far it got."""
    own = np.zeros(2, np.int64)
    given = np.array([given_bytes // 8])
    prefault.keep_ahead(words.ctypes.data, given, 8, size, 4 * MIB, 64 * MIB, own, True, False)
    return int(own[prefault.READY])


def test_pages_beyond_what_is_given_out_are_touched_and_nothing_changes() -> None:
    words = np.frombuffer(mmap.mmap(-1, 16 * MIB), np.uint64)
    words[:] = np.arange(len(words))
    assert 6 * MIB - 8192 <= touched(2 * MIB, 16 * MIB, words) <= 6 * MIB
    assert (words == np.arange(len(words))).all()


def resident() -> int:
    """Bytes of this process's memory that are really there: a page that was only read is not."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the resident memory")
def test_touched_pages_are_there() -> None:
    words = np.frombuffer(mmap.mmap(-1, 16 * MIB), np.uint64)
    before = resident()
    touched(0, 16 * MIB, words)
    assert resident() - before >= 3 * MIB  # of four; others may have let go of some meanwhile
    segments = Segments(2, 1)
    before = resident()
    segments.prefault(8 * MIB)
    assert resident() - before >= 7 * MIB
    assert not segments.words[:MIB].any()


def test_of_a_mirror_what_is_given_out_elsewhere_is_touched_too() -> None:
    words = np.frombuffer(mmap.mmap(-1, 16 * MIB), np.uint64)
    own = np.zeros(2, np.int64)
    before = resident() if sys.platform == "linux" else 0
    prefault.keep_ahead(words.ctypes.data, np.array([MIB]), 8, 16 * MIB, 4 * MIB, 64 * MIB, own, True, True)
    assert 12 * MIB - 8192 <= own[prefault.READY] <= 12 * MIB
    assert sys.platform != "linux" or resident() - before >= 11 * MIB


def test_it_stays_within_the_array() -> None:
    words = np.frombuffer(mmap.mmap(-1, 4 * MIB), np.uint64)
    assert touched(2 * MIB, 4 * MIB, words) <= 4 * MIB
    assert touched(4 * MIB, 4 * MIB, words) <= 4 * MIB + 4096  # it counts from there, and touches nothing


def test_it_does_nothing_when_it_was_told_to_stop() -> None:
    words = np.frombuffer(mmap.mmap(-1, MIB), np.uint64)
    own = np.array([1, 0])
    prefault.keep_ahead(words.ctypes.data, np.zeros(1, np.int64), 8, MIB, MIB, MIB, own, False, False)
    assert own[prefault.READY] == 0


def test_small_segments_have_no_thread_and_large_ones_take_theirs_with_them() -> None:
    before = set(threading.enumerate())
    segments = Segments(2, 1)
    segments.make(0, allocation.room_for(1000), 1000)
    segments.prefault_ahead()
    assert set(threading.enumerate()) == before
    segments.make(1, allocation.room_for(prefault.ENOUGH // 8), 1)
    segments.prefault_ahead()
    segments.prefault_ahead()
    (thread,) = set(threading.enumerate()) - before
    assert thread.name == "prefault"
    del segments
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_what_it_may_be_touching_stays_mapped_while_it_runs() -> None:
    before = set(threading.enumerate())
    words = np.frombuffer(mmap.mmap(-1, MIB), np.uint64)
    held = weakref.ref(words)
    own = prefault.start(words, np.zeros(1, np.int64), 8, MIB)
    del words
    gc.collect()
    assert held() is not None
    (thread,) = set(threading.enumerate()) - before
    own[prefault.STOP] = 1
    thread.join(10)
    assert held() is None


def test_bins_with_as_many_keys_grow_one_after_the_other() -> None:
    table = HashTable(256, {"count": "i8"})
    keys, most, rooms = 100_000, 0.0, table.meta[:, allocation.ROOM].copy()
    table.rows(np.arange(keys).astype(np.uint64))
    while keys < 400_000:
        more = keys // 100
        rooms[:] = table.meta[:, allocation.ROOM]
        table.rows(np.arange(keys, keys + more).astype(np.uint64))
        most = max(most, float((table.meta[:, allocation.ROOM] != rooms).mean()))
        keys += more
    assert most < 0.2  # all of them at once, nearly, if each were content with the same share


def test_queues_with_as_many_rows_grow_one_after_the_other() -> None:
    segments, most, rooms = Segments(256, 2, packed=True), 0.0, np.zeros(256, np.int64)
    for rows in range(2000):
        segments.reserve(np.arange(256))
        segments.meta[:, allocation.USED] += 1
        if rows > 500:
            most = max(most, float((segments.meta[:, allocation.ROOM] != rooms).mean()))
        rooms[:] = segments.meta[:, allocation.ROOM]
        assert (segments.meta[:, allocation.USED] <= segments.meta[:, allocation.ROOM]).all()
    assert most < 0.2
