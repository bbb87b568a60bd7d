"""What a program means: for each stream, the records at each time. Plain dictionaries and lists; no engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from tests.fuzz import direct_state
from tests.fuzz.description import PRIME, Bag, Flow, Node, Program, Record, Ref
from tests.fuzz.functions import FILTERS, MAPS, copies, event_time, lateness, paired

TimedRecords = Iterable[tuple[int, Record]]


def evaluate(program: Program) -> list[list[list[Bag]]]:
    """The bag of each output of each node of each dataflow."""
    flows: list[list[list[Bag]]] = []
    for flow in program.flows:
        nodes: list[list[Bag]] = []
        for node in flow.nodes:
            nodes.append(evaluate_node(node, nodes, flow, flows, program.peers))
        flows.append(nodes)
    return flows


def expected(program: Program, flow: int, ref: Ref, flows: list[list[list[Bag]]]) -> Counter[tuple[int, int, int]]:
    """The multiset of (time, key, value) on a stream."""
    bag = flows[flow][ref[0]][ref[1]]
    return Counter((time, k, v) for time, records in bag.items() for k, v in records)


def evaluate_node(
    node: Node, nodes: list[list[Bag]], flow: Flow, flows: list[list[list[Bag]]], peers: int
) -> list[Bag]:
    """The bags of a node's outputs, given those of all nodes before it."""
    bags = [nodes[i][port] for i, port in node.inputs]
    if node.kind == "input":
        return [gathered((s.at, r) for s in flow.feeds[node.numbers[0]].sends for r in s.records)]
    if node.kind == "replay":
        source, number, port = node.numbers[:3]
        return [flows[source][number][port]]
    if node.kind == "broadcast":
        return [_by_time(bags[0], lambda records: records * peers)]
    if node.kind == "partition":
        return [_by_time(bags[0], lambda records, p=p: [r for r in records if r[1] % node.numbers[0] == p])  # type: ignore[misc]
                for p in range(node.numbers[0])]  # fmt: skip
    if node.kind in direct_state.MEANINGS:
        return [direct_state.MEANINGS[node.kind](bags, node.numbers)]
    return [MEANINGS[node.kind](bags, node.numbers)]


def gathered(records: TimedRecords) -> Bag:
    """(time, record) pairs by time."""
    bag: Bag = defaultdict(list)
    for time, record in records:
        bag[time].append(record)
    return dict(bag)


def _by_time(bag: Bag, function: Callable[[list[Record]], list[Record]]) -> Bag:
    found = {time: function(records) for time, records in bag.items()}
    return {time: records for time, records in found.items() if records}


def _by_key(records: Iterable[Record]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = defaultdict(list)
    for k, v in records:
        groups[k].append(v)
    return groups


def _pass(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return bags[0]


def _map(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return _by_time(bags[0], lambda records: [MAPS[numbers[0]](*r) for r in records])


def _filter(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return _by_time(bags[0], lambda records: [r for r in records if FILTERS[numbers[0]](*r)])


def _flat_map(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return _by_time(bags[0], lambda records: [(k, v + i) for k, v in records for i in range(copies(v))])


def _concat(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return gathered((time, r) for bag in bags for time, records in bag.items() for r in records)


def _delay(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return gathered((t + lateness(numbers[0], r[1]), r) for t, records in bags[0].items() for r in records)


def _aggregate(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    how: Callable[[list[int]], int] = (sum, min, max, len, lambda vs: sum(vs) // len(vs))[numbers[0]]  # type: ignore[assignment]
    return _by_time(bags[0], lambda records: [(k, how(vs) % PRIME) for k, vs in _by_key(records).items()])


def _reduce(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    """Every distinct value of a key, and how many there were."""

    def reduce(records: list[Record]) -> list[Record]:
        return [r for k, vs in _by_key(records).items() for r in [*((k, v) for v in set(vs)), (k, len(vs))]]

    return _by_time(bags[0], reduce)


def _distinct(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return _by_time(bags[0], lambda records: list(set(records)))


def _count(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return _by_time(bags[0], lambda records: [(0, len(records))])


def _join(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    left, right = bags
    return gathered(
        (time, (k, paired(v, other)))
        for time in left.keys() & right.keys()
        for k, v in left[time]
        for k2, other in right[time]
        if k == k2
    )


def _windows(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    """Sums by key and window [end - size, end), at the end; the end is part of the value."""
    slide, size = numbers[0], numbers[0] * numbers[1]
    sums: Counter[tuple[int, int]] = Counter()
    seen: set[tuple[int, int]] = set()
    for time, records in bags[0].items():
        for k, v in records:
            happened = event_time(time, v)
            for end in range(happened + 1, happened + size + 1):
                if end % slide == 0:
                    sums[end, k] += v
                    seen.add((end, k))
    return gathered((end, (k, (sums[end, k] * 7 + end) % PRIME)) for end, k in seen)


def _rounds(records: list[Record], variant: int) -> list[Record]:
    """What leaves a loop into which records are put, round by round."""
    rounds: dict[int, list[Record]] = {0: records}
    out: list[Record] = []
    while rounds:
        number = min(rounds)
        now = rounds.pop(number)
        if variant == 2:
            now = list(set(now))  # a record occurs once in a round
        if variant == 0:
            out += [r for r in now if r[1] == 0]
        elif variant == 1:
            now = [(k, v // 2) for k, v in now if v > 1]
            out += now
        elif variant == 2:
            out += now
        elif variant == 3:
            out += _rounds([r for r in now if r[1] % 2 == 0], 0)
        else:
            out += [r for r in now if r[1] % 2 == 1]
        for k, v in now if variant == 1 else [(k, v // 2) for k, v in now if v > 0]:
            later = v % 2 if variant == 4 else 0
            rounds.setdefault(number + 1 + later, []).append((k, v))
    return out


def _iterate(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    return _by_time(bags[0], lambda records: _rounds(records, numbers[0]))


def _feedback(bags: list[Bag], numbers: tuple[int, ...]) -> Bag:
    """A loop through later times: everything that is in it, at any time."""
    found = []
    for time, records in bags[0].items():
        for k, v in records:
            at = time
            found.append((at, (k, v)))
            while v > 0:
                v, at = v // 3, at + numbers[0]
                found.append((at, (k, v)))
    return gathered(found)


MEANINGS: dict[str, Callable[[list[Bag], tuple[int, ...]], Bag]] = {
    "to_rows": _pass, "to_columns": _pass, "exchange": _pass, "map": _map, "with_columns": _map, "filter": _filter,
    "flat_map": _flat_map, "concat": _concat, "delay": _delay, "aggregate": _aggregate, "reduce": _reduce,
    "distinct": _distinct, "count": _count, "join": _join, "windows": _windows, "iterate": _iterate,
    "feedback": _feedback,
}  # fmt: skip
