"""What the page asks a run besides its status, as plain data for JSON. Each function waits for the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from dataflow.asking.client import ask_run
from dataflow.asking.messages import Arguments, Question, Refused
from dataflow.build.hooks import Movement
from dataflow.comm.codec import require_list
from dataflow.commands.asking import PATIENCE
from dataflow.run.bins import MOST_CELLS, BinsReading
from dataflow.run.holding import HoldingReading, WaitingReading
from dataflow.run.tracing import StepTrace

Plain: TypeAlias = dict[str, object]
_STEPS = 100_000  # of a timeline, that are drawn
_WORDS = 60_000  # letters in which the bins of a migration must be said
_LOOKS = 64  # into parts of a range whose bins are at several workers
_SCATTERED = "these bins are too scattered to be moved in one go: look closer (double-click), and move fewer"
_DECISION = ("when", "acts", "dry", "text")


def ask_holding(run: str) -> list[Plain]:
    """By dataflow: what is held and by whom, who waits, and the path from one to the other. What one worker says of
    others is kept; where something is held is what each says of itself."""
    views = [require_list(each, 2) for each in require_list(ask_run(run, Question("holding"), PATIENCE))]
    found: dict[str, Plain] = {}
    here: dict[tuple[str, int, bool, str], list[int]] = {}
    for worker, readings in views:
        for reading in require_list(readings):
            if not isinstance(reading, HoldingReading) or not isinstance(worker, int):
                continue
            for held in reading.held:
                if held.here:
                    here.setdefault((reading.dataflow, held.operator, held.output, held.time), []).append(worker)
            entry = found.setdefault(reading.dataflow, {"dataflow": reading.dataflow, "held": reading.held})
            waiting = entry.setdefault("waiting", [])
            assert isinstance(waiting, list)
            waiting += [(worker, each) for each in reading.waiting]
    return [_holding(name, entry, here) for name, entry in found.items()]


def _holding(name: str, entry: Plain, here: dict[tuple[str, int, bool, str], list[int]]) -> Plain:
    def where(operator: int, output: bool, time: str) -> list[int]:
        return sorted(set(here.get((name, operator, output, time), ())))

    held, waiting = entry["held"], entry["waiting"]
    assert isinstance(held, tuple) and isinstance(waiting, list)
    return {
        "dataflow": name,
        "held": [
            {
                "operator": each.operator, "port": each.port, "output": each.output, "time": each.time,
                "count": each.count, "since": each.since, "workers": where(each.operator, each.output, each.time),
            }
            for each in held
        ],
        "waiting": [_waiting(worker, each, where) for worker, each in _once(waiting)],
    }  # fmt: skip


def _once(waiting: Sequence[tuple[int, WaitingReading]]) -> list[tuple[list[int], WaitingReading]]:
    """Those who wait for the same thing on several workers are told once."""
    found: dict[str, tuple[list[int], WaitingReading]] = {}
    for worker, each in waiting:  # times move on from one worker's answer to the next: the first one's word counts
        workers, _ = found.setdefault(each.who, ([], each))
        workers.append(worker)
    return list(found.values())


def _waiting(workers: list[int], each: WaitingReading, where: object) -> Plain:
    assert callable(where)
    holders = [
        {
            "operator": one.operator, "output": one.output, "time": one.time, "since": one.since,
            "path": list(one.path), "workers": where(one.operator, one.output, one.time),
        }
        for one in each.holders
    ]  # fmt: skip
    return {"who": each.who, "operator": each.operator, "time": each.time, "workers": workers, "holders": holders}


def ask_bins(run: str, operator: str, first: int, last: int, cells: int) -> Plain:
    """The bins of an operator, in cells."""
    readings = _bins(run, {"operator": operator, "first": first, "last": last, "cells": min(cells, MOST_CELLS)})
    one = readings[0]
    heavy = [{"key": key, "records": count, "worker": who, "bin": bin} for key, count, who, bin in one.heavy]
    return {
        "operator": one.operator,
        "movable": one.movable,
        "shards": one.shards,
        "groups": one.groups,
        "members": sorted({worker for each in readings for worker in each.members}),
        "first": one.first,
        "last": one.last,
        "seconds": one.seconds,
        "cell_first": one.cell_first.tolist(),
        "cell_last": one.cell_last.tolist(),
        "cell": np.concatenate([each.cell for each in readings]).tolist(),
        "worker": np.concatenate([each.worker for each in readings]).tolist(),
        "bins": np.concatenate([each.bins for each in readings]).tolist(),
        "bytes": np.concatenate([each.bytes for each in readings]).tolist(),
        "records": np.concatenate([each.records for each in readings]).tolist(),
        "heavy": heavy,
    }


def _bins(run: str, arguments: Arguments) -> list[BinsReading]:
    answers = require_list(ask_run(run, Question("bins", arguments), PATIENCE))
    found = [each for each in answers if isinstance(each, BinsReading)]
    if not found:
        raise Refused("no worker tells where these bins are: ask again")
    return found


def ask_migrate(run: str, operator: str, action: str, to: str, strategy: str) -> Plain:
    """Begins a migration, or says what it would be, how far it is, or gives it up: as `migrate` does."""
    words = {"operator": operator, "action": action, "to": to, "strategy": strategy}
    movement = ask_run(run, Question("migrate", words), PATIENCE)
    if not isinstance(movement, Movement):
        raise Refused("the run answers something else: use the same version of dataflow as it does")
    return {
        "to": movement.to, "strategy": movement.strategy, "steps": movement.steps, "steps_done": movement.steps_done,
        "bins": movement.shards, "bins_done": movement.shards_done, "failure": movement.failure,
        "under_way": movement.under_way,
    }  # fmt: skip


def words_for(run: str, operator: str, ranges: Sequence[tuple[int, int]], source: int, target: int) -> str:
    """Where bins shall be, in words, if those of some ranges that are at one worker go to another.

    A range may hold bins of other workers, which stay: then the bins of the range are looked at one by one.
    """
    parts: list[str] = []
    for first, last in ranges:
        for begin, end in _runs(run, operator, first, last, source):
            parts.append(f"{begin}-{end}={target}" if end > begin else f"{begin}={target}")
    if not parts:
        raise Refused(f"none of these bins is at worker {source} any more")
    words = ",".join(parts)
    if len(words) > _WORDS:
        raise Refused(_SCATTERED)
    return words


def _runs(run: str, operator: str, first: int, last: int, source: int) -> list[tuple[int, int]]:
    """The stretches of bins of one worker in a range. A part that is all of one worker's need not be looked into."""
    (one,) = _bins(run, {"operator": operator, "first": first, "last": last, "cells": MOST_CELLS})
    found: list[tuple[int, int]] = []
    held = dict(zip(one.cell[one.worker == source].tolist(), one.bins[one.worker == source].tolist(), strict=True))
    whole = np.bincount(one.cell, weights=one.bins, minlength=len(one.cell_first)).astype(np.int64).tolist()
    if sum(bins < whole[cell] for cell, bins in held.items()) > _LOOKS:
        raise Refused(_SCATTERED)
    for cell, bins in sorted(held.items()):
        begin, end = int(one.cell_first[cell]), int(one.cell_last[cell])
        if bins < whole[cell]:
            found += _runs(run, operator, begin, end, source)
        elif found and found[-1][1] + 1 == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def ask_trace(run: str, seconds: float) -> Plain:
    """Timelines of all workers: by step its operator, when it began (microseconds since the first) and how long it
    took."""
    answers = require_list(ask_run(run, Question("trace", {"seconds": seconds}), seconds + PATIENCE))
    timelines = [each for each in answers if isinstance(each, StepTrace)]
    first = min((int(each.began[0]) for each in timelines if len(each.began)), default=0)
    each_has = max(1, _STEPS // max(1, len(timelines)))
    workers = []
    for each in timelines:
        shown = slice(0, each_has)
        workers.append({
            "worker": each.worker,
            "dataflows": list(each.names),
            "names": list(each.names.values()),
            "dataflow": each.dataflows[shown].tolist(),
            "operator": each.operators[shown].tolist(),
            "began": ((each.began[shown] - first) // 100 / 10).tolist(),
            "took": (each.took[shown] // 100 / 10).tolist(),
            "steps": len(each.took),
            "complete": each.complete and len(each.took) <= each_has,
        })
    return {"seconds": seconds, "workers": workers}


def ask_loops(run: str, switch: Plain | None = None) -> list[Plain]:
    """The loops of the program and what they decided; `switch`: which one is to act, or only to say so."""
    answers = require_list(ask_run(run, Question("loops", switch or {}), PATIENCE))
    found: list[Plain] = []
    for answer in answers:
        worker, loops = require_list(answer, 2)
        for number, loop in enumerate(require_list(loops)):
            title, dry, decisions = require_list(loop, 3)
            told = [dict(zip(_DECISION, require_list(each, 4), strict=True)) for each in require_list(decisions)]
            found.append({"worker": worker, "loop": number, "title": title, "dry": dry, "decisions": told})
    return found
