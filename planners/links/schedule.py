"""The transfer schedule: which moves go over the links when (section 3.2 of the live version, 5.1 of the other).

Each node has an uplink and a downlink, both used at once. If bins may go in pieces, the schedule takes exactly as long
as the busiest link must, whatever the order of bins. Whole bins are a harder problem (an open shop without preemption):
there a list of moves, those at the busiest links first, is a heuristic, and `distance` says how far it is from the
bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planners.errors import BadRequest
from planners.links.birkhoff import least_time, phases
from planners.model import Plan

Speeds = float | Mapping[int, float]
Links = dict[tuple[int, int], list[tuple[int, float]]]  # by (from, to), the tasks that move and their sizes


@dataclass(frozen=True, slots=True)
class Transfer:
    """A bin, or a piece of one, on its way between two nodes."""

    task: int
    origin: int
    destination: int
    amount: float
    start: float
    end: float
    phase: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """Transfers in the order of their starts. Those of one phase start together (pieces: within the phase)."""

    transfers: tuple[Transfer, ...]
    lower_bound: float  # what the busiest link needs
    pieces: bool

    @property
    def total(self) -> float:
        """When the last transfer ends."""
        return max((transfer.end for transfer in self.transfers), default=0.0)

    @property
    def distance(self) -> float:
        """How much longer than the lower bound it takes, as a share of that."""
        return self.total / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def phases(self) -> tuple[tuple[Transfer, ...], ...]:
        """The transfers by phase."""
        groups: dict[int, list[Transfer]] = defaultdict(list)
        for transfer in self.transfers:
            groups[transfer.phase].append(transfer)
        return tuple(tuple(groups[phase]) for phase in sorted(groups))


def schedule(plan: Plan, *, uplinks: Speeds = 1.0, downlinks: Speeds = 1.0, pieces: bool = True) -> Schedule:
    """When each move of a plan goes over the links. Speeds, by node or for all alike, are sizes per unit of time.

    >>> from planners.model import Intervals, Tasks
    >>> swap = Plan.between("by hand", Intervals([0, 2, 4]), Intervals([0, 2, 4], [1, 0]), Tasks([3, 1, 2, 2], [1] * 4))
    >>> schedule(swap).total, schedule(swap, downlinks={0: 2.0, 1: 0.5}).total
    (4.0, 8.0)
    """
    nodes = sorted({*plan.current.nodes, *plan.assignment.nodes})
    up, down = _speeds("uplink", uplinks, nodes), _speeds("downlink", downlinks, nodes)
    links: Links = defaultdict(list)
    for task, origin, destination in plan.moves:
        links[origin, destination].append((task, float(plan.tasks.sizes[task])))
    place = {node: i for i, node in enumerate(nodes)}
    traffic = np.zeros((len(nodes), len(nodes)))
    for (origin, destination), bins in links.items():
        traffic[place[origin], place[destination]] = sum(size for _, size in bins)
    bound = least_time(traffic, up, down)
    if pieces:
        transfers = _in_pieces(links, nodes, traffic, up, down)
    else:
        by_node = [dict(zip(nodes, speeds.tolist(), strict=True)) for speeds in (up, down)]
        transfers = _whole(links, *by_node)
    return Schedule(tuple(sorted(transfers, key=lambda t: (t.start, t.phase, t.task))), bound, pieces)


def _speeds(what: str, speeds: Speeds, nodes: list[int]) -> NDArray[np.float64]:
    if isinstance(speeds, Mapping):
        if missing := [node for node in nodes if node not in speeds]:
            raise BadRequest(f"the nodes {missing} have no {what} speed")
        values = [speeds[node] for node in nodes]
    else:
        values = [speeds] * len(nodes)
    array = np.array(values, np.float64)
    if not (np.isfinite(array) & (array > 0)).all():
        raise BadRequest(f"{what} speeds are numbers above zero")
    return array


def _in_pieces(
    links: Links, nodes: list[int], traffic: NDArray[np.float64], up: NDArray[np.float64], down: NDArray[np.float64]
) -> list[Transfer]:
    """Hands the bins of each pair of nodes, one after the other, to the phases in which the pair has its turns."""
    waiting = {pair: list(bins) for pair, bins in links.items()}
    transfers: list[Transfer] = []
    clock, number = 0.0, -1
    for number, phase in enumerate(phases(traffic, up, down)):
        for i, j in np.argwhere(phase.rates > 0).tolist():
            rate = float(phase.rates[i, j])
            transfers += _take(waiting[nodes[i], nodes[j]], (nodes[i], nodes[j]), clock, phase.duration, rate, number)
        clock += phase.duration
    # What is left is empty, or of the size of a rounding error: it joins the last piece of its bin, or goes at once.
    last = {transfer.task: k for k, transfer in enumerate(transfers)}
    for (origin, destination), bins in waiting.items():
        for task, size in bins:
            if task in last:
                transfers[last[task]] = replace(transfers[last[task]], amount=transfers[last[task]].amount + size)
            else:
                transfers.append(Transfer(task, origin, destination, size, clock, clock, max(number, 0)))
    return transfers


def _take(
    bins: list[tuple[int, float]], pair: tuple[int, int], start: float, duration: float, rate: float, phase: int
) -> list[Transfer]:
    """As much of the waiting bins as goes over in a phase."""
    taken, clock, end = [], start, start + duration
    while bins and clock < end:
        task, size = bins.pop(0)
        finish = clock + size / rate
        if finish > end * (1 + 1e-12):
            sent = (end - clock) * rate
            bins.insert(0, (task, size - sent))
            size, finish = sent, end
        taken.append(Transfer(task, *pair, size, clock, min(finish, end), phase))
        clock = finish
    return taken


def _whole(links: Links, up: dict[int, float], down: dict[int, float]) -> list[Transfer]:
    """One bin at a time over each link, and none ever waits while its links are free: at each time, of the pairs whose
    links are free, the one with the busiest link goes first, with its largest bin."""
    waiting = {pair: sorted(bins, key=lambda bin: bin[1]) for pair, bins in links.items()}
    work = {pair: sum(size for _, size in bins) / min(up[pair[0]], down[pair[1]]) for pair, bins in links.items()}
    to_send: dict[int, float] = defaultdict(float)
    to_receive: dict[int, float] = defaultdict(float)
    for (origin, destination), time in work.items():
        to_send[origin] += time
        to_receive[destination] += time
    free_up, free_down = dict.fromkeys(to_send, 0.0), dict.fromkeys(to_receive, 0.0)
    transfers: list[Transfer] = []
    clock, phase = 0.0, 0
    while waiting:
        ready = [pair for pair in waiting if free_up[pair[0]] <= clock and free_down[pair[1]] <= clock]
        for pair in sorted(ready, key=lambda p: -max(to_send[p[0]], to_receive[p[1]])):
            origin, destination = pair
            if free_up[origin] > clock or free_down[destination] > clock:
                continue  # taken a moment ago
            task, size = waiting[pair].pop()
            time = size / min(up[origin], down[destination])
            free_up[origin] = free_down[destination] = clock + time
            to_send[origin] -= time
            to_receive[destination] -= time
            transfers.append(Transfer(task, origin, destination, size, clock, clock + time, phase))
            if not waiting[pair]:
                del waiting[pair]
        phase += bool(ready)
        busy = [time for time in (*free_up.values(), *free_down.values()) if time > clock]
        clock = min(busy, default=clock)
    return transfers
