"""What windows, joins in time and asynchronous calls mean, spelled out over bags of (key, value): no engine."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.description import PRIME, Bag, Record
from tests.fuzz.direct import gathered
from tests.fuzz.functions import paired

Numbers = tuple[int, ...]
Timed = tuple[int, int, int]  # time, key, value

HOWS = ("inner", "left", "right", "outer")
NOBODY = 7  # the value of a record that is not there
FAR = 3  # of the tolerances of as-of joins, the number that stands for none

# By kind: how many inputs, and by number how many variants there are.
TIMED: dict[str, tuple[int, tuple[int, ...]]] = {
    "near": (2, (3, 3, 4)), "as_of": (2, (4, 2)), "looked_up": (2, (2,)), "first_ones": (1, (5,)),
    "in_window": (1, (4, 3)), "asked": (1, (2,)),
}  # fmt: skip


def _listed(bag: Bag) -> list[Timed]:
    return [(time, k, v) for time, records in bag.items() for k, v in records]


def _near(bags: list[Bag], numbers: Numbers) -> Bag:
    """Pairs of one key of which the right one is from `before` before the left one to `after` after it."""
    before, after, how = numbers
    lefts, rights = map(_listed, bags)
    out: list[tuple[int, Record]] = []
    met: tuple[set[int], set[int]] = (set(), set())
    for i, (t, k, v) in enumerate(lefts):
        for j, (u, k2, w) in enumerate(rights):
            if k == k2 and -before <= u - t <= after:
                out.append((max(t, u), (k, paired(v, w))))
                met[0].add(i)
                met[1].add(j)
    if HOWS[how] in ("left", "outer"):
        out += [(t + after, (k, paired(v, NOBODY))) for i, (t, k, v) in enumerate(lefts) if i not in met[0]]
    if HOWS[how] in ("right", "outer"):
        out += [(t + before, (k, paired(NOBODY, v))) for i, (t, k, v) in enumerate(rights) if i not in met[1]]
    return gathered(out)


def _as_of(bags: list[Bag], numbers: Numbers) -> Bag:
    """The last right record at or before each left one. Of one time, the one that looks greatest."""
    tolerance, how = numbers
    lefts, rights = map(_listed, bags)
    out = []
    for t, k, v in lefts:
        seen = [(u, repr((k, w)), w) for u, k2, w in rights if k2 == k and u <= t]
        last = max(seen, default=None)
        if last is not None and tolerance != FAR and last[0] < t - tolerance:
            last = None
        if last is not None or HOWS[how] == "left":
            out.append((t, (k, paired(v, NOBODY if last is None else last[2]))))
    return gathered(out)


def _looked_up(bags: list[Bag], numbers: Numbers) -> Bag:
    """The row of a table at each record's time. A value that is a multiple of three takes a row out, unless another is
    put at the same time."""
    lefts, rights = map(_listed, bags)
    out = []
    for t, k, v in lefts:
        times = [u for u, k2, _ in rights if k2 == k and u <= t]
        rows = [w for u, k2, w in rights if times and k2 == k and u == max(times) and w % 3]
        row = max(rows, key=repr, default=None)
        if row is not None or HOWS[numbers[0]] == "left":
            out.append((t, (k, paired(v, NOBODY if row is None else row))))
    return gathered(out)


def _first_ones(bags: list[Bag], numbers: Numbers) -> Bag:
    """The first record of a key, and the first after so long."""
    out, since = [], dict[int, int]()
    for t, _, k, v in sorted((t, repr((k, v)), k, v) for t, k, v in _listed(bags[0])):
        if k not in since or t >= since[k] + numbers[0] + 1:
            since[k] = t
            out.append((t, (k, v)))
    return gathered(out)


def _in_window(bags: list[Bag], numbers: Numbers) -> Bag:
    """How many there are in a window, their sum, the least, the first and the last; at its end."""
    kind, size = numbers[0], numbers[1] + 1
    events, out = sorted(_listed(bags[0])), []
    for key in {k for _, k, _ in events}:
        mine = [(t, v) for t, k, v in events if k == key]
        out += [(end, (key, _told(some, end))) for end, some in (_sliding, _sliding, _sessions, _counted)[kind](
            mine, size, 2 * size if kind == 1 else size
        )]  # fmt: skip
    return gathered(out)


def _sliding(mine: list[tuple[int, int]], slide: int, size: int) -> list[tuple[int, list[tuple[int, int]]]]:
    found = [(end, [(t, v) for t, v in mine if end - size <= t < end]) for end in range(0, mine[-1][0] + 99, slide)]
    return [(end, some) for end, some in found if some]


def _sessions(mine: list[tuple[int, int]], gap: int, _: int) -> list[tuple[int, list[tuple[int, int]]]]:
    runs: list[list[tuple[int, int]]] = []
    for t, v in mine:
        if runs and t < runs[-1][-1][0] + gap:
            runs[-1].append((t, v))
        else:
            runs.append([(t, v)])
    return [(run[-1][0] + gap, run) for run in runs]


def _counted(mine: list[tuple[int, int]], size: int, _: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Of one time, in the order of what they look like."""
    mine = sorted(mine, key=lambda each: (each[0], repr(each[1])))
    parts = [mine[first : first + size] for first in range(0, len(mine) - size + 1, size)]
    return [(part[-1][0], part) for part in parts]


def _told(some: list[tuple[int, int]], end: int) -> int:
    values = [v for _, v in sorted(some)]
    return told(len(values), sum(values), min(values), values[0], values[-1], end)


def told(n: int, total: int, least: int, first: int, last: int, end: int) -> int:
    """The value of a window's row."""
    return (n + 7 * total + 31 * least + 101 * first + 1009 * last + 13 * end) % PRIME


def _asked(bags: list[Bag], numbers: Numbers) -> Bag:
    return {time: [answer(record) for record in records] for time, records in bags[0].items()}


def answer(record: Record) -> Record:
    """What is answered when one asks about a record."""
    return record[0], (record[1] * 5 + 2) % PRIME


MEANINGS: dict[str, Callable[[list[Bag], Numbers], Bag]] = {
    "near": _near, "as_of": _as_of, "looked_up": _looked_up, "first_ones": _first_ones,
    "in_window": _in_window, "asked": _asked,
}  # fmt: skip
