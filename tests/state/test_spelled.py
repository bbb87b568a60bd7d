"""Keys that are strings, bytes, dates, booleans or several of them, in compiled folds: as a direct evaluation says, on
random batches, workers, seeds and migrations."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import megaphone
from dataflow import Recovery, Stream, Worker
from dataflow.columns import Columns, spelling
from dataflow.errors import ConstructionError
from dataflow.state import native
from dataflow.state.folds.fold import FoldError, fold
from dataflow.testing import Crashed, simulate

DAY = dt.date(2026, 1, 1)


@fold(state={"count": "i8"}, output={"word": "key", "count": "i8"})
def count(key, value, state):  # type: ignore[no-untyped-def]
    state.count += value
    return key, state.count


@fold(state={"sum": "i8", "over": "b1"}, output={"word": "key", "sum": "i8"}, pending={"none": "i8"})
def gather(time, key, value, state, emit, later):  # type: ignore[no-untyped-def]
    if state.sum == 0:
        later.at(time + 5, 0)
    state.sum += value


@fold(
    state={"sum": "i8", "over": "b1"}, output={"word": "key", "sum": "i8"}, pending={"none": "i8"}, forget="over",
    create=False,
)  # fmt: skip
def give(time, key, value, state, emit, later):  # type: ignore[no-untyped-def]
    emit.row(key, state.sum)
    state.over = True


KEYS: dict[str, Callable[[Random], list[Any]]] = {
    "strings": lambda r: [r.choice(["", "a", "ä" * r.randint(1, 4), None, "long " + "x" * r.randint(0, 16)])],
    "bytes": lambda r: [r.choice([b"", b"\0", b"\0\0", bytes([r.randrange(256)]) * r.randint(1, 9)])],
    "dates": lambda r: [DAY + dt.timedelta(r.randint(-3, 3))],
    "booleans": lambda r: [r.random() < 0.5],
    "several": lambda r: [r.choice(["a", "ab", "", None]), r.randint(-2, 2), r.choice([b"", b"x"]), r.random() < 0.5],
}


def columns_of(rows: list[list[Any]]) -> dict[str, Any]:
    first = rows[0]
    kinds: dict[Any, Any] = {str: pa.string(), bytes: pa.binary()}
    made: dict[str, Any] = {}
    for place in range(len(first)):
        values = [row[place] for row in rows]
        kind = next((type(value) for value in values if value is not None), str)
        made[f"k{place}"] = pa.array(values, kinds[kind]) if kind in kinds else values
    return made


def run(seed: int, kind: str, moves: bool, folds: dict[str, Any], compiled: bool = True) -> tuple[list[Any], list[Any]]:
    """What came in, as (time, key, value), and what came out, as (time, *row)."""
    chance = Random(seed)
    workers = chance.randint(1, 3)
    sent: list[Any] = []
    out: list[Any] = []
    width = len(KEYS[kind](Random(0)))

    async def main(worker: Worker) -> None:
        mine = Random(seed * 10 + worker.index)
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            control, configuration = scope.input()
            names = [f"k{place}" for place in range(width)]
            what = {"key": names if width > 1 else names[0], "value": "value", **folds}
            result = (
                megaphone.state_machine(configuration, stream, bins=8, **what)
                if moves
                else native.state_machine(stream, **what)
            )
            result.inspect_batch(lambda time, batch: out.extend((time, *row) for row in batch.rows()))
        if worker.index == 0:
            for _ in "12345":
                move = megaphone.Move(chance.randrange(8), chance.randrange(workers))
                control.send([move], at=chance.randint(0, 12))
        control.close()
        for time in range(12):
            rows = [KEYS[kind](mine) for _ in range(mine.randint(0, 6))]
            if rows:
                values = [mine.randint(1, 9) for _ in rows]
                handle.send({**columns_of(rows), "value": values}, at=time)
                sent.extend((time, tuple(row), value) for row, value in zip(rows, values, strict=True))
            handle.advance_to(time + 1)

    simulate(main, workers=workers, seed=seed)
    return sent, out


def totals(sent: list[Any]) -> Counter[Any]:
    """The greatest count of each key, which is its sum."""
    found: Counter[Any] = Counter()
    for _, key, value in sent:
        found[key] += value
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("kind", KEYS)
def test_running_totals_by_any_key(kind: str, moves: bool, seed: int) -> None:
    sent, out = run(seed, kind, moves, {"fold": count})
    assert len(out) == len(sent)
    greatest: dict[Any, int] = {}
    for _, *key, total in out:
        greatest[tuple(key)] = max(total, greatest.get(tuple(key), 0))
    assert greatest == totals(sent)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["strings", "several"])
def test_what_is_due_knows_its_key_and_a_key_that_was_forgotten_is_new(kind: str, compiled: bool, seed: int) -> None:
    folds = {"fold": gather, "due": give}
    if not compiled:
        folds = {name: each.without_compiling() for name, each in folds.items()}
    sent, out = run(seed, kind, True, folds)
    expected: list[Any] = []
    open_since: dict[Any, int] = {}
    held: Counter[Any] = Counter()
    for time in range(40):
        for at, key, value in sent:
            if at == time:
                open_since.setdefault(key, time)
                held[key] += value
        for key, since in list(open_since.items()):
            if since + 5 == time:
                expected.append((time, *key, held.pop(key)))
                del open_since[key]
    assert Counter(out) == Counter(expected)


def test_two_keys_with_one_hash_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_alike(batch: Columns, *rest: Any) -> Any:
        return spelling.spell(batch, *rest), np.full(len(batch), 7, np.uint64)

    monkeypatch.setattr(spelling, "spell_and_hash", all_alike)

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            native.state_machine(stream, key="word", value="n", fold=count.without_compiling())
        handle.send({"word": ["a", "b"], "n": [1, 1]})

    with pytest.raises(ValueError, match="two keys have the same hash") as caught:
        simulate(main, workers=1)
    assert any("for the key 'b'" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("given", "keys", "error", "message"),
    [
        ({"word": ["x" * 25]}, None, ValueError, r"room for 21: say keys=megaphone.spelled\(32\)"),
        ({"word": ["x" * 201]}, megaphone.spelled(400), ValueError, "a text of 201 bytes, and 200 are the most"),
        ({"word": np.array([0.5])}, None, TypeError, "holds float64: keys are strings, bytes, integers"),
        ({"word": np.array([1 << 63], np.uint64)}, None, TypeError, "below 2\\^63"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_key_says_why(given: Any, keys: Any, error: type[Exception], message: str) -> None:
    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            native.state_machine(stream, key="word", value="n", fold=count, keys=keys)
        handle.send({**given, "n": [1]})

    with pytest.raises(error, match=message):
        simulate(main, workers=1)


def test_what_is_refused_when_it_is_built() -> None:
    def build(**what: Any) -> None:
        async def main(worker: Worker) -> None:
            with worker.dataflow() as scope:
                _, stream = scope.input()
                native.state_machine(stream, value="n", **what)

        simulate(main, workers=1)

    always = fold(state={"sum": "i8", "over": "b1"}, output={"word": "key", "sum": "i8"}, pending={"none": "i8"},
                  forget="over")(give.function)  # fmt: skip
    for what, error, message in [
        ({"key": "w", "fold": count, "keys": megaphone.dense(5)}, ConstructionError, "dense keys are integers"),
        ({"key": list("abcdefgh"), "fold": count}, ConstructionError, "1 to 7 columns"),
        ({"key": "w", "fold": gather, "due": always}, FoldError, "create=False"),
    ]:
        with pytest.raises(error, match=message):
            build(**what)
    with pytest.raises(ValueError, match="1 to 1,024 bytes"):
        megaphone.spelled(0)


def test_state_is_looked_at_pinned_and_saved_by_its_own_keys() -> None:
    out: dict[str, int] = {}
    looked: list[Any] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            result = megaphone.state_machine(
                scope.control(), stream, key="word", value="n", fold=count, bins=8, name="count"
            )
            result.inspect_batch(lambda _, batch: out.update(batch.rows()))
            probe = result.probe()
            control = scope.control()
        for now in range(worker.resume_at, 30):
            handle.advance_to(now)
            if worker.index == 0:
                handle.send({"word": ["a", f"w{now % 3}"], "n": [1, 1]})
                if now == 3:
                    control.send([megaphone.Pin("a", worker.peers - 1)])
            worker.save(now)
            await probe.wait_passed(now - 2)
        handle.close()
        await probe.wait_passed(29)
        store = result.handle.store
        looked.append({**store.view_apart(), **{k: v for b in range(8) for k, v in store.view(b).entries.items()}})

    kept, crashes = Recovery("memory://spelled", every=5), 0
    for turns in (150, 250, None):
        try:
            simulate(main, workers=2, seed=turns or 0, recovery=kept, crash_after=turns)
            break
        except Crashed:
            crashes += 1
    assert crashes and out == {"a": 30, "w0": 10, "w1": 10, "w2": 10}
    merged = {key: state for each in looked[-2:] for key, state in each.items()}
    assert merged == {key: {"count": n} for key, n in out.items()}


@pytest.mark.parametrize("seed", range(20))
def test_a_spelling_gives_back_what_it_was_given(seed: int) -> None:
    chance = Random(seed)
    rows = [KEYS["several"](chance) for _ in range(chance.randint(1, 50))]
    batch = Columns(columns_of(rows)).slice(chance.randint(0, 1), len(rows))
    spelt = spelling.spell(batch, batch.names, spelling.word_count(40, 4), "test")
    back = Columns(dict(zip(batch.names, spelling.unspell(spelt, len(batch.names)), strict=True)))
    assert back.rows() == batch.rows()
    hashes = spelling.hash_spelt(spelt).tolist()
    assert len(set(hashes)) == len(set(batch.rows()))


@pytest.mark.parametrize("seed", range(20))
def test_one_text_is_spelled_in_one_pass_as_in_several(seed: int) -> None:
    chance = Random(seed)
    texts = ["".join(chance.choices("aé€z", k=chance.randint(0, 12))) for _ in range(chance.randint(1, 40))]
    given = [None if chance.random() < 0.1 else text for text in texts]
    kind = chance.choice([pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
    batch = Columns({"k": pa.array(given, pa.string()).cast(kind)}).slice(chance.randint(0, 1), len(given))
    words = chance.choice([5, 6, 8])
    spelt, hashes = spelling.spell_and_hash(batch, ["k"], words, "test")
    expected = spelling.spell(batch, ["k"], words, "test")
    assert (spelt == expected).all() and (hashes == spelling.hash_spelt(expected)).all()
    with pytest.raises(ValueError, match="takes 45 bytes, and there is room for 37"):
        spelling.spell_and_hash(Columns({"k": ["x" * 45]}), ["k"], 5, "test")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("kind", ["strings", "several"])
def test_a_join_by_any_key(kind: str, moves: bool, seed: int) -> None:
    sides: list[list[Any]] = [[], []]
    out: list[Any] = []
    width = len(KEYS[kind](Random(0)))
    names = [f"k{place}" for place in range(width)]

    async def main(worker: Worker) -> None:
        mine = Random(seed * 10 + worker.index)
        with worker.dataflow() as scope:
            (first, left), (second, right) = scope.input(), scope.input()
            what: Any = {"key": names if width > 1 else "k0", "value": ["a"], "right_value": ["b"], "name": "pairs"}
            what |= {} if width > 1 else {"keys": megaphone.spelled(21)}
            pairs: Stream[Columns]
            if moves:
                pairs = megaphone.join(scope.control(), left, right, bins=8, **what)
            else:
                pairs = native.join(left, right, **what)
            pairs.inspect_batch(lambda _, batch: out.extend(batch.rows()))
            control = scope.control()
        if worker.index == 0 and moves:
            control.send([megaphone.Move(mine.randrange(8), 1) for _ in "123"])
        for time in range(6):
            for side, (handle, name) in enumerate(((first, "a"), (second, "b"))):
                rows = [KEYS[kind](mine) for _ in range(mine.randint(1, 4))]
                values = [mine.randrange(1000) for _ in rows]
                handle.send({**columns_of(rows), name: values}, at=time)
                sides[side] += [(tuple(row), value) for row, value in zip(rows, values, strict=True)]

    simulate(main, workers=2, seed=seed)
    assert Counter(out) == Counter((*key, a, b) for key, a in sides[0] for other, b in sides[1] if key == other)
