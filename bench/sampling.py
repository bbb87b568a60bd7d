"""Where the processor time of an epoch goes, by samples: what runs each time that a worker has used so much of it.

A profiler that counts calls makes calls dearer than they are, and this engine is made of short ones. Samples do not:
the kernel interrupts the worker after each half millisecond of its processor's time, and the interrupted function is
noted. Waiting costs no processor time, and so is not seen.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EVERY = 0.0005  # seconds of the processor between two samples

# The first place that fits the innermost function says what it is for. "path" or "path:function".
PHASES: tuple[tuple[str, str], ...] = (
    ("bench/", "main and operators"),
    ("dataflow/operators/probe", "waiting for a probe"),
    ("dataflow/operators/", "main and operators"),
    ("dataflow/channels/", "main and operators"),
    ("dataflow/build/", "main and operators"),
    ("dataflow/time/", "main and operators"),
    ("dataflow/progress/tracker", "tracker"),
    ("dataflow/progress/validity", "checks"),
    ("dataflow/comm/conversation", "checks"),
    ("dataflow/progress/", "progress batches"),
    ("dataflow/comm/flow", "flow control"),
    ("dataflow/run/flowing", "flow control"),
    ("dataflow/comm/patience", "looking"),
    ("dataflow/comm/transport:linger", "looking"),
    ("dataflow/comm/transport:_look", "looking"),
    ("dataflow/comm/transport:_alone", "looking"),
    ("dataflow/comm/linked:linger", "looking"),
    ("dataflow/comm/linked:_look", "looking"),
    ("dataflow/comm/linked:_alone", "looking"),
    ("dataflow/comm/linked:collect", "looking"),
    ("dataflow/comm/linked:_collect_from", "looking"),
    ("dataflow/comm/gathering:collect", "looking"),
    ("dataflow/comm/gathering:waits", "looking"),
    ("dataflow/comm/gathering:flush", "send"),
    ("dataflow/comm/gathering:_wake", "send"),
    ("dataflow/comm/ring:ring_bell", "send"),
    ("dataflow/comm/ring:try_send", "send"),
    ("dataflow/comm/ring:_put", "send"),
    ("dataflow/comm/ring:hear_bell", "receive"),
    ("dataflow/comm/ring:take", "receive"),
    ("dataflow/comm/board:announce", "send"),
    ("dataflow/comm/board:post", "encode"),
    ("dataflow/comm/board:_post", "encode"),
    ("dataflow/comm/board:_write", "send"),
    ("dataflow/comm/board:<listcomp>", "encode"),
    ("dataflow/comm/board:read", "receive"),
    ("dataflow/comm/hall:fence", "send"),
    ("dataflow/comm/pipes:try_send", "send"),
    ("dataflow/comm/pipes:send_some", "send"),
    ("dataflow/comm/pipes", "receive"),
    ("dataflow/comm/frames:encode", "encode"),
    ("dataflow/comm/frames:checksum", "checksums"),
    ("dataflow/comm/frames", "decode"),
    ("dataflow/comm/link:read", "receive"),
    ("dataflow/comm/link:_receive", "receive"),
    ("dataflow/comm/link:_decode", "decode"),
    ("dataflow/comm/link", "encode"),
    ("dataflow/comm/wire:_encode", "encode"),
    ("dataflow/comm/wire:encode", "encode"),
    ("dataflow/comm/wire:_padded", "encode"),
    ("dataflow/comm/wire", "decode"),
    ("dataflow/comm/rows:_encode", "encode"),
    ("dataflow/comm/rows:encode", "encode"),
    ("dataflow/comm/codec:pack", "encode"),
    ("dataflow/comm/codec:encode", "encode"),
    ("dataflow/comm/", "decode"),
    ("dataflow/run/", "pump: turns, sweeps, mail"),
    ("dataflow/members/", "pump: turns, sweeps, mail"),
    ("trio/", "trio"),
    ("outcome/", "trio"),
)


class Samples:
    """By function, how often it was the innermost."""

    def __init__(self) -> None:
        self.functions: Counter[str] = Counter()

    def note(self, _: int, frame: FrameType | None) -> None:
        """The signal's handler."""
        if frame is not None:
            code = frame.f_code
            self.functions[f"{code.co_filename}:{code.co_name}"] += 1

    def by_phase(self) -> Counter[str]:
        """By what it was for, how often that was."""
        phases: Counter[str] = Counter()
        for function, count in self.functions.items():
            phases[phase_of(function)] += count
        return phases


def phase_of(function: str) -> str:
    """What a function ("/path/to/file.py:name") is for.

    >>> phase_of("/x/dataflow/comm/frames.py:encode"), phase_of("/x/dataflow/comm/frames.py:_next")
    ('encode', 'decode')
    >>> phase_of("/usr/lib/python3/heapq.py:merge")
    'other'
    """
    path, _, name = function.rpartition(":")
    for place, phase in PHASES:
        where, _, start = place.partition(":")
        if where in path and name.startswith(start):
            return phase
    return "other"


@contextmanager
def sampling() -> Iterator[Samples]:
    """Samples this process. For its main thread, which must not use SIGPROF otherwise."""
    samples = Samples()
    before = signal.signal(signal.SIGPROF, samples.note)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
