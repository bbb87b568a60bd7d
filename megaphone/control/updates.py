"""What is said on the control stream, and what may not be.

An update takes effect at the time at which it is sent. `Move` sends one bin to a worker, `Moves` many; `Assign` says
where every bin is. `Pin`, `Unpin` and `Pins` are about single keys: see `pins`.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow.state.values import Key
from megaphone.errors import ControlError as ControlError
from megaphone.keys.pins import Pin, Pins, Unpin, check_pins


@dataclass(frozen=True, slots=True)
class Move:
    """As of the time at which this is sent, `bin` lives at `worker`."""

    bin: int
    worker: int
    operator: str = ""  # whom it is for; all operators on the stream, if it does not say

    def renumbered(self, workers: int) -> Move:
        """The same, where there are other workers now."""
        return replace(self, worker=self.worker % workers)


@dataclass(frozen=True, slots=True)
class Assign:
    """As of the time at which this is sent, bin i lives at `workers[i]`. (When it arrives, that is a tuple.)"""

    workers: Sequence[int] | NDArray[np.integer]
    operator: str = ""

    def renumbered(self, workers: int) -> Assign:
        """The same, where there are other workers now."""
        return replace(self, workers=tuple((np.asarray(self.workers) % workers).tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Many moves in one: as of the time at which this is sent, bin `bins[i]` lives at `workers[i]`. Arrays."""

    bins: NDArray[np.integer]
    workers: NDArray[np.integer]
    operator: str = ""

    def renumbered(self, workers: int) -> Moves:
        """The same, where there are other workers now."""
        return replace(self, workers=self.workers % workers)

    def __len__(self) -> int:
        return len(self.bins)

    def __repr__(self) -> str:
        return f"Moves({list(zip(self.bins.tolist(), self.workers.tolist(), strict=True))})"


Update: TypeAlias = Move | Moves | Assign | Pin | Unpin | Pins


def check_update(update: object, bins: int, peers: int) -> Update:
    """The update in its normal form; ControlError says what is wrong with it."""
    if isinstance(update, Move):
        return Move(_within(update.bin, bins, "bin"), _within(update.worker, peers, "worker"), update.operator)
    if isinstance(update, Moves):
        return _check_moves(update, bins, peers)
    if isinstance(update, Assign):
        workers: object = update.workers
        if isinstance(workers, str) or not isinstance(workers, Sequence | np.ndarray):
            raise ControlError(f"a map is a list of workers, one for each of {bins} bins, not {_brief(workers)}")
        if len(update.workers) != bins:
            raise ControlError(f"a map of {len(update.workers)} bins, and the operator has {bins}")
        return Assign(tuple(_all_within(update.workers, peers, "worker").tolist()), update.operator)
    if isinstance(update, Pin | Unpin | Pins):
        return check_pins(update, peers)
    raise ControlError(
        f"{_brief(update)} is not a configuration update: send Move(bin, worker), Moves(bins, workers) or "
        "Assign(workers) for bins, or Pin(key, worker), Unpin(key) or Pins(keys, workers) for single keys"
    )


def _check_moves(moves: Moves, bins: int, peers: int) -> Moves:
    if len(moves.bins) != len(moves.workers):
        raise ControlError(f"moves of {len(moves.bins)} bins to {len(moves.workers)} workers: one worker for each bin")
    return Moves(
        _all_within(moves.bins, bins, "bin"), _all_within(moves.workers, peers, "worker"), moves.operator
    )


def _all_within(values: Sequence[int] | NDArray[np.integer], end: int, what: str) -> NDArray[np.int64]:
    try:
        numbers = np.asarray(values)
    except ValueError:  # lists of different lengths
        numbers = np.empty(0, object)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        numbers = np.array([_within(value, end, what) for value in values], np.int64)  # which says what is odd
    outside = numbers[(numbers < 0) | (numbers >= end)]
    if outside.size:
        raise ControlError(f"there is no {what} {int(outside[0])}: there are {end}, from 0 to {end - 1}")
    return numbers.astype(np.int64)


def _within(value: SupportsIndex, end: int, what: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise ControlError(f"{_brief(value)} is not the number of a {what}") from None
    if not 0 <= number < end:
        raise ControlError(f"there is no {what} {_brief(number)}: there are {end}, from 0 to {end - 1}")
    return number


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def parse_lines(lines: Iterable[str]) -> Iterator[tuple[int, Update]]:
    """Updates from lines of JSON: {"time": 5, "bin": 3, "worker": 1} or {"time": 5, "map": [0, 1, 0, 1]}; for a single
    key {"time": 5, "key": 70, "worker": 1}, or null as its worker to have it in its bin again; a list is a tuple. With
    "operator": "totals" it is for that operator alone.

    >>> list(parse_lines(['{"time": 5, "bin": 3, "worker": 1}', "", '{"time": 9, "map": [0, 1]}']))
    [(5, Move(bin=3, worker=1)), (9, Assign(workers=(0, 1)))]
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield parse_line(line, number)


def parse_line(line: str, number: int) -> tuple[int, Update]:
    """The update of a line, whose number is for errors."""
    form = (
        'lines look like {"time": 5, "bin": 3, "worker": 1} or {"time": 5, "map": [0, 1]}, or, for a single key, '
        '{"time": 5, "key": 70, "worker": 1}'
    )
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ControlError(f"line {number} is not JSON ({error}); {form}") from None
    if not isinstance(entry, dict) or type(entry.get("time")) is not int:
        raise ControlError(f"line {number} has no integer time; {form}")
    operator = entry.pop("operator", "")
    if not isinstance(operator, str):
        raise ControlError(f"line {number}: an operator has a name, not {_brief(operator)}")
    if set(entry) == {"time", "bin", "worker"}:
        return entry["time"], Move(entry["bin"], entry["worker"], operator)
    if set(entry) == {"time", "map"} and isinstance(entry["map"], list):
        return entry["time"], Assign(tuple(entry["map"]), operator)
    if set(entry) == {"time", "key", "worker"}:
        key, worker = _key(entry["key"]), entry["worker"]
        return entry["time"], Unpin(key, operator) if worker is None else Pin(key, worker, operator)
    raise ControlError(f"line {number} is neither a move nor a map nor a pin; {form}")


def _key(value: Key) -> Key:
    """A key of JSON: a list stands for a tuple."""
    return tuple(map(_key, value)) if isinstance(value, list) else value
