"""What is said on the control stream, and what may not be.

An update takes effect at the time at which it is sent. `Move` sends one bin to a worker, `Moves` many; `Assign` says
where every bin is. `Split` and `Merge` say which bins there are: see `tree`. `Pin`, `Unpin` and `Pins` are about single
keys: see `pins`. `Replan` is about plans: see `replans`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow.members.roster import Roster
from dataflow.state.values import Key, Value
from megaphone.control.checks import all_within, brief, within
from megaphone.control.replans import Replan, check_replan
from megaphone.control.tree import Merge, Split, check_shape, run_of
from megaphone.errors import ControlError as ControlError
from megaphone.keys.pins import HOME, Pin, Pins, Unpin, check_pins


@dataclass(frozen=True, slots=True)
class Move:
    """As of the time at which this is sent, `bin` lives at `worker`: a finest bin, by its number, or a prefix as in
    `Move("0110*", 1)`. (When it arrives, that is the first of its finest bins, and how many there are.)"""

    bin: int | str
    worker: int
    operator: str = field(default="", repr=False)  # whom it is for; all operators on the stream, if it does not say
    count: int = 1  # finest bins, from this one on

    @property
    def number(self) -> int:
        """Of its first finest bin, in an update that has been checked."""
        assert isinstance(self.bin, int), "a prefix is resolved where it is sent"
        return self.bin

    @property
    def numbers(self) -> range:
        """Of its finest bins."""
        return range(self.number, self.number + self.count)

    def halves(self) -> list[Move]:
        """The same as moves of the two halves of the bin."""
        half = self.count // 2
        return [replace(self, count=half), replace(self, bin=self.number + half, count=half)]

    def __repr__(self) -> str:
        more = "" if self.count == 1 else f", count={self.count}"
        return f"Move(bin={self.bin!r}, worker={self.worker}{more})"

    def renumbered(self, workers: int) -> Move:
        """The same, where there are other workers now."""
        return replace(self, worker=self.worker % workers)


@dataclass(frozen=True, slots=True)
class Assign:
    """As of the time at which this is sent, bin i lives at `workers[i]`. (When it arrives, that is a tuple.)"""

    workers: Sequence[int] | NDArray[np.integer]
    operator: str = field(default="", repr=False)

    def renumbered(self, workers: int) -> Assign:
        """The same, where there are other workers now."""
        return replace(self, workers=tuple((np.asarray(self.workers) % workers).tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Many moves in one: as of the time at which this is sent, bin `bins[i]` lives at `workers[i]`. Arrays."""

    bins: NDArray[np.integer]
    workers: NDArray[np.integer]
    operator: str = field(default="", repr=False)

    def renumbered(self, workers: int) -> Moves:
        """The same, where there are other workers now."""
        return replace(self, workers=self.workers % workers)

    def __len__(self) -> int:
        return len(self.bins)

    def __repr__(self) -> str:
        return f"Moves({list(zip(self.bins.tolist(), self.workers.tolist(), strict=True))})"


Update: TypeAlias = Move | Moves | Assign | Split | Merge | Pin | Unpin | Pins | Replan


def check_update(update: object, bins: int, peers: int) -> Update:
    """The update in its normal form; ControlError says what is wrong with it."""
    if isinstance(update, Move):
        return _check_move(update, bins, peers)
    if isinstance(update, Moves):
        return _check_moves(update, bins, peers)
    if isinstance(update, Assign):
        workers: object = update.workers
        if isinstance(workers, str) or not isinstance(workers, Sequence | np.ndarray):
            raise ControlError(f"a map is a list of workers, one for each of {bins} bins, not {brief(workers)}")
        if len(update.workers) != bins:
            raise ControlError(f"a map of {len(update.workers)} bins, and the operator has {bins}")
        return Assign(tuple(all_within(update.workers, peers, "worker").tolist()), update.operator)
    if isinstance(update, Split | Merge):
        return check_shape(update, bins, peers)
    if isinstance(update, Pin | Unpin | Pins):
        return check_pins(update, peers)
    if isinstance(update, Replan):
        return check_replan(update, bins)
    raise ControlError(
        f"{brief(update)} is not a configuration update: send Move(bin, worker), Moves(bins, workers) or "
        "Assign(workers), Split(bin) or Merge(bin) for bins, Pin(key, worker), Unpin(key) or Pins(keys, workers) for "
        "single keys, or Replan(plan, method) for the plan of a join"
    )


def workers_of(update: Update) -> set[int]:
    """The workers that an update gives something to."""
    if isinstance(update, Move | Pin):
        return {update.worker}
    if isinstance(update, Merge):
        return set() if update.worker is None else {update.worker}
    if isinstance(update, Moves | Assign | Pins):
        return set(np.unique(np.asarray(update.workers)).tolist()) - {HOME}
    return set()


def require_there(update: Update, roster: Roster) -> None:
    """ControlError if an update gives something to a worker that is not there, or is leaving."""
    for worker in workers_of(update):
        why = roster.refuses(worker)
        if why is not None:
            raise ControlError(f"{why}: nothing can be moved there")


def _check_move(move: Move, bins: int, peers: int) -> Move:
    run = run_of(move.bin, bins)
    count = run.count if isinstance(move.bin, str) else move.count
    within(run.first + count - 1, bins, "bin")
    return Move(run.first, within(move.worker, peers, "worker"), move.operator, count)


def _check_moves(moves: Moves, bins: int, peers: int) -> Moves:
    if len(moves.bins) != len(moves.workers):
        raise ControlError(f"moves of {len(moves.bins)} bins to {len(moves.workers)} workers: one worker for each bin")
    return Moves(all_within(moves.bins, bins, "bin"), all_within(moves.workers, peers, "worker"), moves.operator)


def parse_lines(lines: Iterable[str]) -> Iterator[tuple[int, Update]]:
    """Updates from lines of JSON: {"time": 5, "bin": 3, "worker": 1} or {"time": 5, "map": [0, 1, 0, 1]}; for a single
    key {"time": 5, "key": 70, "worker": 1}, or null as its worker to have it in its bin again; a list is a tuple. A bin
    may be a prefix, "0110*", and {"time": 5, "split": "0110*", "into": 2} and {"time": 5, "merge": "011*"} say which
    bins there are (with "worker": 1, where the merged one is). For a join {"time": 5, "plan": "a (b c)", "method":
    "hybmig"}, or null as its plan to cancel what was sent for that time. With "operator": "totals" it is for that
    operator alone.

    >>> list(parse_lines(['{"time": 5, "bin": 3, "worker": 1}', "", '{"time": 9, "map": [0, 1]}']))
    [(5, Move(bin=3, worker=1)), (9, Assign(workers=(0, 1)))]
    >>> list(parse_lines(['{"time": 5, "split": "01*"}', '{"time": 9, "merge": "0*", "worker": 1}']))
    [(5, Split(bin='01*', into=2)), (9, Merge(bin='0*', worker=1))]
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield parse_line(line, number)


def parse_line(line: str, number: int) -> tuple[int, Update]:
    """The update of a line, whose number is for errors."""
    form = (
        'lines look like {"time": 5, "bin": 3, "worker": 1} or {"time": 5, "map": [0, 1]}, {"time": 5, "split": "01*"} '
        'or {"time": 5, "merge": "0*"}, for a single key {"time": 5, "key": 70, "worker": 1}, or '
        'for the plan of a join {"time": 5, "plan": "a (b c)"}'
    )
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ControlError(f"line {number} is not JSON ({error}); {form}") from None
    if not isinstance(entry, dict) or type(entry.get("time")) is not int:
        raise ControlError(f"line {number} has no integer time; {form}")
    operator = entry.pop("operator", "")
    if not isinstance(operator, str):
        raise ControlError(f"line {number}: an operator has a name, not {brief(operator)}")
    if set(entry) == {"time", "bin", "worker"}:
        return entry["time"], Move(entry["bin"], entry["worker"], operator)
    if set(entry) == {"time", "map"} and isinstance(entry["map"], list):
        return entry["time"], Assign(tuple(entry["map"]), operator)
    if set(entry) == {"time", "key", "worker"}:
        key, worker = _key(entry["key"]), entry["worker"]
        return entry["time"], Unpin(key, operator) if worker is None else Pin(key, worker, operator)
    if "split" in entry and set(entry) <= {"time", "split", "into"}:
        return entry["time"], Split(entry["split"], entry.get("into", 2), operator)
    if "merge" in entry and set(entry) <= {"time", "merge", "worker"}:
        return entry["time"], Merge(entry["merge"], entry.get("worker"), operator)
    if "plan" in entry and set(entry) <= _OF_REPLANS:
        return entry["time"], _replan(entry, operator)
    raise ControlError(f"line {number} is neither a move nor a map nor a split, a merge, a pin or a plan; {form}")


_OF_REPLANS = {"time", "plan", "method", "bins", "share", "background", "order"}


def _replan(entry: Mapping[str, Value], operator: str) -> Replan:
    """What JSON says of a plan. Its form is checked where every other update's is."""
    return Replan(**{name: value for name, value in entry.items() if name != "time"}, operator=operator)


def _key(value: Key) -> Key:
    """A key of JSON: a list stands for a tuple."""
    return tuple(map(_key, value)) if isinstance(value, list) else value
