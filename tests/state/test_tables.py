"""Tables against dictionaries, segments against lists: random operations, awkward keys, bins that leave and come."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.columns.hashing import as_words, mix, mix_all, unmix_all
from dataflow.state.folds.driver import FoldDriver
from dataflow.state.folds.fold import fold
from dataflow.state.memory import allocation
from dataflow.state.memory.segments import OutOfMemory, Segments
from dataflow.state.tables import blocks, hash_kernels
from dataflow.state.tables import table as table_module
from dataflow.state.tables.table import Dense, DenseTable, HashTable, Table, make_table

AWKWARD = [0, 1, 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2, 0x9E3779B97F4A7C15, 2**64 - 0x9E3779B97F4A7C15]
STATE = {"n": "i8", "x": "f4", "flags": ("u1", 3)}
BINS = [2, 4, 64, 1 << 10, 1 << 20]


def hash_of(key: int) -> int:
    """The finaliser of splitmix64, in Python's own integers."""
    word = (key + 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def keys_of(*keys: int) -> Any:
    return np.array(keys, np.uint64)


def contents(table: Table) -> dict[int, int]:
    """What a table says that it has: by scanning it."""
    keys, rows = table.scan()
    assert len(set(keys.tolist())) == len(keys) and len(set(rows.tolist())) == len(rows)
    return dict(zip(keys.tolist(), table["n"][rows].tolist(), strict=True))


def check_invariants(table: Table) -> None:
    """Segments do not overlap, whether in use or given back; each bin counts its keys; each key is in its bin."""
    segments = table.segments
    stretches = [(first, first + room) for first, room in segments.meta[:, :2].tolist() if room]
    for number in range(allocation.SIZES):
        head = int(segments.ctl[allocation.FREE + number])
        while head:
            stretches.append((head - 1, head - 1 + int(allocation.size_of(number))))
            head = int(segments.words[(head - 1) * segments.stride])
    stretches.sort()
    assert all(end <= start for (_, end), (start, _) in pairwise(stretches))
    assert not stretches or stretches[-1][1] <= segments.ctl[allocation.GIVEN]
    if not table.dense:
        keys, rows = table.scan()
        bins = table.bins_of(keys)
        assert np.array_equal(np.bincount(bins, minlength=table.bins), segments.meta[:, allocation.USED])
        places = bins >> segments.deep
        first, room = segments.meta[places, allocation.FIRST], segments.meta[places, allocation.ROOM]
        assert ((first <= rows) & (rows < first + room)).all()


def move(bin: int, source: Table, target: Table, limit: int = 1 << 20) -> None:
    """A bin leaves one table and comes to another, as Megaphone has it."""
    pieces = [(head, words.copy()) for head, words in source.leave(bin, limit)]
    source.departed(bin)
    for head, words in reversed(pieces):
        if target.install(bin, head, words):
            target.arrived(bin)


def test_rows_leave_a_shared_segment_while_others_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two pieces of a bin the segment grows, and gaps are closed: no row is left behind, none goes twice."""
    monkeypatch.setattr(table_module, "MOST", 2)
    for seed in range(40):
        chance = Random(seed)
        table, truth = HashTable(8, {"n": "i8"}), dict[int, int]()
        for key in chance.sample(range(10_000), 60):
            table["n"][table.rows(keys_of(key))] = truth[key] = key
        bin, found = chance.randrange(8), dict[int, int]()
        for _, words in table.leave(bin, 4):
            rows = words.reshape(-1, 2)
            hashes = (rows[:, 0] & ~hash_kernels.TOP) | ((np.uint64(bin) << np.uint64(61)) & hash_kernels.TOP)
            unmix_all(np.ascontiguousarray(hashes), keys := np.empty(len(rows), np.uint64))
            for key, n in zip(keys.tolist(), rows[:, 1].tolist(), strict=True):
                assert key not in found
                found[key] = n
            others = [key for key in truth if table.bins_of(keys_of(key))[0] != bin]
            for gone in chance.sample(others, min(2, len(others))):
                table.forget(keys_of(gone))
                del truth[gone]
            new = [key for key in chance.sample(range(10_000, 20_000), 9) if table.bins_of(keys_of(key))[0] != bin]
            for key in new:
                table["n"][table.rows(keys_of(key))] = truth[key] = key
        table.departed(bin)
        assert found == {key: n for key, n in truth.items() if table.bins_of(keys_of(key))[0] == bin}
        assert contents(table) == {key: n for key, n in truth.items() if key not in found}
        check_invariants(table)


def test_rows_that_do_not_belong_to_a_bin_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "MOST", 2)
    here, there = HashTable(8, {"n": "i8"}), HashTable(8, {"n": "i8"})
    here.rows(np.arange(40, dtype=np.uint64))
    (head, words), *_ = here.leave(3, 1 << 10)
    for bin, (_, used, _, offset), rows in (
        (4, head, words),  # of another bin
        (3, head, np.zeros_like(words)),  # no rows at all
        (3, (0, 2, 0, 0), np.concatenate([words[:2], words[:2]])),  # one twice
    ):
        with pytest.raises(ValueError, match=f"a piece of bin {bin} has a row that is not of this bin, or is there tw"):
            HashTable(8, {"n": "i8"}).install(bin, (0, used, 0, offset), rows)
    for wrong in ((0, 1, 0, 0), (0, head[1], 0, 2)):
        with pytest.raises(ValueError, match=r"a piece of bin 3 does not fit into its \d+ rows"):
            there.install(3, wrong, words)
    assert there.install(3, head, words)


def random_keys(chance: Random, some: int) -> list[int]:
    pool = AWKWARD + [chance.getrandbits(64) for _ in range(some)] + list(range(some))
    return [chance.choice(pool) for _ in range(some)]


@pytest.mark.parametrize(("bins", "most"), [*((n, table_module.MOST) for n in BINS), (4, 2), (64, 4), (1 << 10, 2)])
def test_a_hash_table_is_a_dictionary(bins: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "MOST", most)  # above that, bins share segments
    for seed in range(1 if bins > 10_000 else 8):
        chance = Random(seed)
        table, truth = HashTable(bins, STATE), dict[int, int]()
        pool = random_keys(chance, 300)
        for _ in range(25):
            keys = chance.choices(pool, k=chance.choice([1, 10, 100]))
            if chance.random() < 0.6:
                rows = table.rows(keys_of(*keys))
                assert len({*zip(keys, rows.tolist(), strict=True)}) == len(set(keys))  # one row per key
                np.add.at(table["n"], rows, 1)
                for key in keys:
                    truth[key] = truth.get(key, 0) + 1
            else:
                table.forget(keys_of(*keys))  # some of them twice, some of them not there
                for key in keys:
                    truth.pop(key, None)
            found = np.empty(len(pool), np.int64)
            hash_kernels.find_rows(table.words, table.meta, table.stride, table.reach, keys_of(*pool), found)
            assert [row >= 0 for row in found.tolist()] == [key in truth for key in pool]
        assert contents(table) == truth
        check_invariants(table)
        read = table.read()
        assert dict(zip(read["key"].view(np.uint64).tolist(), read["n"].tolist(), strict=True)) == truth
        assert read.names == ("key", "n", "x")


def test_keys_of_one_cluster_are_forgotten_one_by_one() -> None:
    """Keys that all belong to the last places of a segment, and wrap around its end."""
    by_place: dict[int, list[int]] = {}
    for key in range(4000):
        hashed = hash_of(key)
        if hashed >> 63 == 1:  # the second of two bins
            by_place.setdefault((hashed & 0xFFFFFFFF) * 16 >> 32, []).append(key)
    for seed in range(60):
        chance = Random(seed)
        keys = [chance.choice(by_place[place]) for place in (15, 15, 14, 15, 0, 13, 1, 14, 15)]
        table, truth = HashTable(2, {"n": "i8"}), dict[int, int]()
        for number, key in enumerate(keys):
            table["n"][table.rows(keys_of(key))] = number
            truth[key] = number
        chance.shuffle(keys)
        for key in keys:
            table.forget(keys_of(key))
            truth.pop(key, None)
            assert contents(table) == truth
            assert all(table["n"][table.rows(keys_of(k))].tolist() == [v] for k, v in truth.items())
            check_invariants(table)


def test_a_new_key_starts_from_zero_wherever_its_row_was() -> None:
    table = HashTable(2, STATE)
    for start in range(0, 3000, 100):
        keys = np.arange(start, start + 100, dtype=np.uint64)
        rows = table.rows(keys)
        assert not table["n"][rows].any() and not table["x"][rows].any() and not table["flags"][rows].any()
        table["n"][rows], table["x"][rows], table["flags"][rows] = -1, np.nan, 255
        if start % 300:
            table.forget(keys)


def test_the_hash_is_the_one_that_is_written_down_and_can_be_undone() -> None:
    chance = Random(1)
    keys = AWKWARD + [chance.getrandbits(64) for _ in range(500)]
    hashes, back = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64)
    mix_all(keys_of(*keys), hashes)
    assert hashes.tolist() == [hash_of(key) for key in keys] == [int(mix(np.uint64(key))) for key in keys]
    unmix_all(hashes, back)
    assert back.tolist() == keys
    for bins in BINS:
        table = HashTable(bins, {})
        assert table.bins_of(keys_of(*keys)).tolist() == [hash_of(key) * bins >> 64 for key in keys]


def test_anchors_are_keys_of_the_bins_that_have_something() -> None:
    for table in (HashTable(64, {"n": "i8"}), DenseTable(64, {"n": "i8"}, 1000)):
        table.rows(np.arange(0, 1000, 50, dtype=np.uint64))
        assert sorted(table.bins_of(table.anchors()).tolist()) == table.occupied.tolist()
        assert 0 < len(table.occupied) < 64


@pytest.mark.parametrize(("bins", "domain"), [(2, 1), (4, 3), (4, 64), (64, 1000), (1 << 20, 1000), (16, 1 << 16)])
def test_a_dense_table_is_an_array(bins: int, domain: int) -> None:
    chance = Random(bins + domain)
    table, truth = DenseTable(bins, STATE, domain), dict[int, int]()
    fixed = keys_of(domain - 1)
    fixed.flags.writeable = False
    assert table["n"][table.rows(fixed)].tolist() == [0]
    for _ in range(20):
        keys = [chance.randrange(domain) for _ in range(chance.randint(1, 40))] + [domain - 1, 0]
        np.add.at(table["n"], table.rows(keys_of(*keys)), 1)
        for key in keys:
            truth[key] = truth.get(key, 0) + 1
        gone = chance.choice(keys)
        table.forget(keys_of(gone))
        truth.pop(gone)
    assert {key: n for key, n in contents(table).items() if n} == truth
    occupied = set(table.occupied.tolist())
    assert set(contents(table)) == {key for key in range(domain) if key % bins in occupied}
    check_invariants(table)
    for key in (domain, 2**63, 2**64 - 1):
        with pytest.raises(ValueError, match=rf"is outside of dense\({domain}\): keys are 0 to {domain - 1}"):
            table.rows(keys_of(0, key))


@pytest.mark.parametrize(
    ("dense", "most"), [(None, 8), (None, 4), (None, 2), (Dense(500), 8)], ids=["hashed", "by two", "by four", "dense"]
)
def test_bins_leave_and_come_back(dense: Dense | None, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tables, as Megaphone moves them: contents and counts, and the rest stays where it is."""
    monkeypatch.setattr(table_module, "MOST", most)
    for seed in range(6):
        chance = Random(seed)
        here, there = (make_table(8, {"n": "i8"}, dense) for _ in range(2))
        truth: dict[int, int] = {}
        owner = dict.fromkeys(range(8), here)
        for _ in range(30):
            key = chance.randrange(500)
            bin = int(here.bins_of(keys_of(key))[0])
            table = owner[bin]
            table["n"][table.rows(keys_of(key))] += 1
            truth[key] = truth.get(key, 0) + 1
            moved = chance.randrange(8)
            source = owner[moved]
            target = there if source is here else here
            move(moved, source, target, chance.choice([3, 16, 1 << 20]))
            owner[moved] = target
            check_invariants(here)
            check_invariants(there)
        assert not set(here.occupied) & set(there.occupied)
        assert {k: n for k, n in (contents(here) | contents(there)).items() if n} == truth


def test_segments_fill_from_the_front_when_packed() -> None:
    for seed in range(10):
        chance = Random(seed)
        segments, truth = Segments(8, 3, packed=True), [list[int]() for _ in range(8)]
        for number in range(60):
            bins = [chance.randrange(8) for _ in range(chance.randint(1, 30))]
            segments.reserve(np.array(bins))
            for bin in bins:
                first, room, used, _ = segments.meta[bin].tolist()
                assert used < room
                segments.words[(first + used) * 3 : (first + used + 1) * 3] = number
                segments.meta[bin, allocation.USED] += 1
                truth[bin] += [number] * 3
            if chance.random() < 0.3:
                gone = chance.randrange(8)
                segments.clear(gone)
                truth[gone] = []
            assert [segments.contents(bin).tolist() for bin in range(8)] == truth
            assert segments.sizes.tolist() == [8 * len(words) for words in truth]


def test_a_table_that_outgrows_its_addresses_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Segments.__init__, "__defaults__", (False, 1 << 20))
    table = HashTable(4, {"n": "i8"})
    with pytest.raises(OutOfMemory, match="a table has outgrown its 65536 rows: use more workers"):
        table.rows(np.arange(1 << 17, dtype=np.uint64))
    assert issubclass(OutOfMemory, MemoryError)


@pytest.mark.parametrize("bins", [0, 1, 3, 12, (1 << 20) + 1, 1 << 21, -2])
def test_bins_that_cannot_be(bins: int) -> None:
    with pytest.raises(ValueError, match=rf"the number of bins must be a power of two from 2 to 2\^20, not {bins}"):
        HashTable(bins, {"n": "i8"})


def test_other_errors_of_tables() -> None:
    for domain in (0, -1, (1 << 40) + 1):
        with pytest.raises(ValueError, match=rf"a dense domain has between 1 and 2\^40 keys, not {domain}"):
            Dense(domain)
    with pytest.raises(TypeError, match="segments do not leave their process"):
        HashTable(2, {}).segments.__reduce__()
    segments = Segments(2, 1)
    segments.make(0, 4, 0)
    with pytest.raises(AssertionError, match="bin 0 is here already"):
        segments.make(0, 4, 0)
    with pytest.raises(ValueError, match="no segment has room for 5 rows exactly"):
        segments.make(1, 5, 0)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"n": "spam"}, "state 'n': 'spam' is not a type of numbers, such as 'i8', 'f8', 'u4' or 'b1'"),
        ({"n": "c16"}, "state 'n' is complex128: only integers, floats and booleans of up to 64 bits can be used"),
        ({"n": "U5"}, "state 'n' is <U5: only integers"),
        ({"n": "M8[s]"}, "only integers, floats and booleans"),
        ({"n": ("i8", 0)}, "state 'n': an array in state is written (type, length), not ('i8', 0)"),
        ({"n": ("i8", 2, 3)}, "an array in state is written (type, length)"),
        ({"_n": "i8"}, "state: '_n' cannot be a name: it must be one in Python, and not begin with _"),
        ({"a b": "i8"}, "state: 'a b' cannot be a name"),
        (["n"], "state is a mapping of names to types such as {'count': 'i8'}, not ['n']"),
    ],
)
def test_states_that_cannot_be(schema: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        HashTable(2, schema)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["i1", "u1", "i4", "u4", "i8", "u8", ">i8", ">i4", "?", "M8[s]", "m8[D]"])
def test_integers_of_any_type_are_words(kind: str) -> None:
    column = np.array([0, 1, 1, 0, 1]).astype(kind)[::2]
    words = as_words(column, "k")
    one = {"M8[s]": 10**9, "m8[D]": 86400 * 10**9}.get(kind, 1)  # dates and time spans are counts of nanoseconds
    assert words.dtype == np.uint64 and words.tolist() == [0, one, one] and words.flags.c_contiguous
    if kind in ("i1", "i4", "i8", ">i8"):
        assert as_words(np.array([-1], kind), "k").tolist() == [2**64 - 1]


def test_what_is_no_integer_is_no_key() -> None:
    for column, held in ((np.array([1.0]), "float64"), (np.array([1j]), "complex128")):
        with pytest.raises(TypeError, match=f"column 'k' cannot be a key: it holds {held}, and keys of columns are"):
            as_words(column, "k")


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("bins", [1 << 16, 1 << 17])
def test_records_are_counted_by_bin_and_with_very_many_bins_some_blocks_stand_for_all(bins: int, dense: bool) -> None:
    @fold(state={"n": "i8"}, output={"n": "i8"})
    def add(key, value, state):  # type: ignore[no-untyped-def]
        state.n += value
        return state.n

    table = make_table(bins, add.state, Dense(1 << 20) if dense else None)
    driver = FoldDriver(add, ("value",), table, True)
    size, batches = blocks.BLOCK * 3 - 1, 61  # two blocks and most of a third: batches need not be whole blocks
    keys = np.random.default_rng(1).integers(0, 1 << 20, (batches, size), dtype=np.uint64)
    for batch in keys:
        if isinstance(table, DenseTable):
            table.check(batch)
        driver.apply(0, batch, [np.ones(size, np.int64)])
    counted = table.meta[:, allocation.RECORDS]
    exact = np.bincount(table.bins_of(keys.reshape(-1)), minlength=bins)
    if bins == 1 << 16:
        assert np.array_equal(counted, exact)
    else:
        assert counted.sum() == keys.size  # 183 blocks, one of each kind for 61
        assert not counted[exact == 0].any()


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("bins", [8, 2 * blocks.NEAR])
def test_dense_bins_are_found_at_home_and_elsewhere(bins: int, workers: int) -> None:
    """Folds over tables that bins leave, come to and come back to: with many bins those at home are not looked up."""

    @fold(state={"n": "i8"}, output={"n": "i8"})
    def add(key, value, state):  # type: ignore[no-untyped-def]
        state.n += value
        return state.n

    chance, domain = np.random.default_rng(bins + workers), 3 * bins - 1
    tables = [make_table(bins, add.state, Dense(domain, workers)) for _ in range(2)]
    drivers = [FoldDriver(add, ("value",), table, True) for table in tables]
    owner, truth = np.arange(bins) % 2, np.zeros(domain, np.int64)
    some = chance.integers(0, min(domain, bins), 40)  # few bins, so that they meet again
    for _ in range(30):
        keys = chance.choice(some, 50).astype(np.uint64)
        for number, (table, driver) in enumerate(zip(tables, drivers, strict=True)):
            mine = keys[owner[keys % np.uint64(bins)] == number]
            assert isinstance(table, DenseTable)
            table.check(mine)
            driver.apply(0, mine, [np.ones(len(mine), np.int64)])
        np.add.at(truth, keys, 1)
        for bin in set((chance.choice(some, 3) % bins).tolist()):
            source, target = tables[owner[bin]], tables[1 - owner[bin]]
            move(bin, source, target)
            owner[bin] = 1 - owner[bin]
        for table in tables:
            check_invariants(table)
    found = {key: n for table in tables for key, n in contents(table).items() if n}
    assert found == {key: n for key, n in enumerate(truth.tolist()) if n}


def test_a_dense_bin_that_comes_back_is_at_home_and_one_that_is_made_again_is_empty() -> None:
    here, there = (DenseTable(8, {"n": "i8"}, 80, 2) for _ in range(2))
    here["n"][here.rows(keys_of(3, 11))] = 5
    home = here.meta[3, allocation.FIRST]
    move(3, here, there)
    assert here.homes.tolist() == [0] and there.homes.tolist() == [0]
    assert int(there.meta[3, allocation.FIRST]) >= 8 * 12, "there it is a guest, behind all homes"
    move(3, there, here)
    assert here.meta[3, allocation.FIRST] == home and here.homes.tolist() == [1 << 3]
    move(3, here, there)
    assert here["n"][here.rows(keys_of(3, 11))].tolist() == [0, 0], "what it left behind is not found again"


def test_a_dense_domain_without_room_for_homes_does_without() -> None:
    table = DenseTable(4, {"n": "i8"}, 1 << 31)
    with pytest.raises(MemoryError, match="outgrown"):  # bins are made one after the other, as far as it goes
        table.rows(keys_of(0, 1, 2, 3))
