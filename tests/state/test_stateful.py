"""Native stateful operators against sequential programs: random records over several times, 1 to 3 workers, seeds."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.columns import Columns
from dataflow.columns.pact import key_words
from dataflow.errors import ConstructionError
from dataflow.state import native as stateful
from dataflow.state.folds.fold import fold
from dataflow.state.memory import allocation
from dataflow.state.stores.join_store import JoinStore
from dataflow.state.tables.table import Dense
from tests.columns.running import Epochs, row, run
from tests.engine.harness import notes
from tests.megaphone.column_cases import PENDING, STATE, add, add_to_known, come_back  # compiled already

SEEDS = range(10)


def records(seed: int, times: int = 5, keys: Any = (0, 1, 2, -1, 1 << 40)) -> Epochs:
    chance = Random(seed)
    return [
        [{"k": chance.choice(keys), "v": chance.randint(-3, 9)} for _ in range(chance.choice([0, 1, 4, 9]))]
        for _ in range(times)
    ]


def adding(left: Epochs, right: Epochs) -> Counter[Any]:
    """`add` to the left, `add_to_known` to the right, `come_back` for what was put off; in the order of times."""
    todo: dict[int, tuple[list[Any], list[Any], list[Any]]] = defaultdict(lambda: ([], [], []))
    for side, epochs in enumerate((left, right)):
        for time, some in enumerate(epochs):
            todo[time][side].extend((record["k"], record["v"]) for record in some)
    totals: dict[int, int] = {}
    seen: Counter[int] = Counter()
    out: Counter[Any] = Counter()
    while todo:
        time = min(todo)
        lefts, rights, due = todo.pop(time)
        for key, value in lefts:
            totals[key] = totals.get(key, 0) + value
            seen[key] += 1
            if value > 0 and value % 3 == 0:
                todo[time + value % 4 + 1][2].append(key)
        for key, value in rights:
            if key in totals:
                totals[key] += 100 * value
        for key in due:
            totals[key] = totals.get(key, 0) - 1
            out[time, row(key=key, total=totals[key])] += 1
            if seen[key] > 4:
                del totals[key], seen[key]
    return out


@pytest.mark.parametrize(
    ("compiled", "dense"),
    [(True, None), (False, None), (False, Dense(9))],  # compiled over dense keys: in test_folds
)
def test_a_state_machine_is_a_loop_over_records(compiled: bool, dense: Dense | None) -> None:
    first, back = (add, come_back) if compiled else (add.without_compiling(), come_back.without_compiling())
    found = 0
    for seed in SEEDS:
        epochs = records(seed, keys=range(9) if dense else (0, 1, 2, -1, 1 << 40))
        out = run(
            seed, lambda s: stateful.state_machine(s, key="k", value="v", fold=first, due=back, keys=dense), epochs
        )
        assert out == adding(epochs, [])
        found += len(out)
    assert found > 20


@pytest.mark.parametrize("compiled", [True, False])
def test_two_inputs_are_taken_in_the_order_of_times_the_left_one_first(compiled: bool) -> None:
    folds = [f if compiled else f.without_compiling() for f in (add, add_to_known, come_back)]

    def build(left: Any, right: Any) -> Any:
        return stateful.binary(
            left, right, key="k", value="v", right_value="v", fold=folds[0], right_fold=folds[1], due=folds[2]
        )

    for seed in SEEDS:
        left, right = records(seed), records(seed + 100)
        assert run(seed, build, left, right) == adding(left, right)


def test_keys_of_another_name_on_the_right() -> None:
    first, second, back = (f.without_compiling() for f in (add, add_to_known, come_back))

    def build(left: Any, right: Any) -> Any:
        renamed = right.columns.map(lambda batch: {"other": batch["k"], "value": batch["v"]})
        return stateful.binary(
            left, renamed, key="k", right_key="other", value="v", right_value="value",
            fold=first, right_fold=second, due=back,
        )  # fmt: skip

    left, right = records(3), records(4)
    assert run(3, build, left, right) == adding(left, right)


def test_the_order_that_is_asked_for_is_kept_whatever_the_schedule() -> None:
    @fold(state={"n": "i8"}, output={"key": "i8", "digits": "i8"}, compiled=False)
    def digits(key, value, state):
        state.n = (state.n * 10 + value.v) % 10**15
        return key, state.n

    for seed in SEEDS:
        chance = Random(seed)
        epochs = [[{"k": n % 2, "v": chance.randint(1, 9), "at": n} for n in range(6)] for _ in range(3)]
        expected: Counter[Any] = Counter()
        state = [0, 0]
        for time, some in enumerate(epochs):
            chance.shuffle(some)
            for record in sorted(some, key=lambda record: record["at"]):
                state[record["k"]] = (state[record["k"]] * 10 + record["v"]) % 10**15
                expected[time, row(key=record["k"], digits=state[record["k"]])] += 1

        def build(stream: Any) -> Any:
            return stateful.state_machine(stream, key="k", value=("v", "at"), fold=digits, order=("at",))

        assert run(seed, build, epochs) == expected


def in_batches(time: int, batch: Any, state: Any, notificator: Any) -> Any:
    """Totals by key, of whole batches; and each key that came says so again, three times later."""
    if len(batch):
        np.add.at(state["total"], state.rows(key_words(batch["k"])), batch["v"])
        notificator.notify_at(time + 3, np.unique(batch["k"]), amount=1)
    due = notificator.due
    if not len(due):
        return None
    return {"key": due["key"], "total": state["total"][state.rows(key_words(due["key"]))]}


@pytest.mark.parametrize("dense", [None, Dense(9)], ids=["hashed", "dense"])
def test_a_function_of_batches_is_called_once_for_each_time(dense: Dense | None) -> None:
    for seed in SEEDS:
        epochs = records(seed, keys=range(9) if dense else (0, 1, -1, 1 << 40))
        expected: Counter[Any] = Counter()
        totals: Counter[int] = Counter()
        for time in range(len(epochs) + 3):
            for record in epochs[time] if time < len(epochs) else []:
                totals[record["k"]] += record["v"]
            back = {record["k"] for record in epochs[time - 3]} if time >= 3 else ()
            expected.update((time, row(key=key, total=totals[key])) for key in back)

        def build(stream: Any) -> Any:
            return stateful.unary(stream, key="k", fold=in_batches, state=STATE, pending=PENDING, keys=dense)

        assert run(seed, build, epochs) == expected


@pytest.mark.parametrize("unique", [None, "left", "right"])
def test_a_join_remembers_every_pair(unique: str | None) -> None:
    met = 0
    for seed in SEEDS:
        chance = Random(seed)
        sides = []
        for name in ("left", "right"):
            keys = [-1, 0, 1, 2, 3, 1 << 40] if name != unique else chance.sample([-1, 0, 1, 2, 3, 1 << 40], 6)
            epochs: list[list[Any]] = [[] for _ in range(5)]
            for number in range(len(keys) if name == unique else 14):
                key = keys[number] if name == unique else chance.choice(keys)
                value = {"x": chance.random()} if name == "left" else {"n": number, "flag": number % 2 == 0}
                chance.choice(epochs).append({"k": key, **value})
            sides.append(epochs)
        expected = Counter(
            (max(t, u), row(key=a["k"], x=a["x"], n=b["n"], flag=b["flag"]))
            for t, some in enumerate(sides[0])
            for a in some
            for u, others in enumerate(sides[1])
            for b in others
            if a["k"] == b["k"]
        )

        def build(left: Any, right: Any) -> Any:
            return stateful.join(left, right, key="k", value=["x"], right_value=["n", "flag"], unique=unique)

        assert run(seed, build, *sides) == expected
        met += len(expected)
    assert met > 40


def test_a_join_uses_the_room_of_what_has_met_again() -> None:
    joining = JoinStore("join", ("k", "k"), (["x"], ["y"]), "right", 2)
    for time in range(40):
        keys = np.arange(time * 10, time * 10 + 10)
        assert joining.run(2 * time, [[Columns({"k": keys.repeat(3), "x": np.arange(30)})], []]) == []
        (pairs,) = joining.run(2 * time + 1, [[], [Columns({"k": keys, "y": keys})]])
        assert sorted(pairs.rows()) == [(k, 3 * (k % 10) + i, k) for k in keys.tolist() for i in range(3)]
    lefts, rights = (int(pool.segments.meta[:, allocation.USED].sum()) for pool in joining.parts[1:])
    assert lefts <= 60 and rights == 400  # 30 at a time, over two bins


def test_values_of_every_type_come_back_from_a_join() -> None:
    kinds = {"a": "i1", "b": "u8", "c": "f4", "d": "M8[s]", "e": ">i4"}
    left = [[{"k": 1, "a": -5, "b": 2**64 - 1, "c": 0.5, "d": 10, "e": -7}]]
    right = [[], [{"k": 1, "z": True}]]

    def build(one: Any, two: Any) -> Any:
        typed = one.columns.map(lambda batch: {name: batch[name].astype(kinds.get(name, "i8")) for name in batch.names})
        return stateful.join(typed, two, key="k", value=list(kinds), right_value=["z"])

    ((time, found),) = run(2, build, left, right, kinds={}, workers=1)
    assert time == 1
    moment = np.datetime64(10, "s").item()
    assert found == row(key=1, a=-5, b=2**64 - 1, c=0.5, d=moment, e=-7, z=True)


def test_state_outlives_times_and_stays_where_its_key_is() -> None:
    @fold(state={"n": "i8"}, output={"key": "i8", "n": "i8"}, compiled=False)
    def count(key, state):
        state.n += 1
        return key, state.n

    epochs = [[{"k": n % 7} for n in range(14)] for _ in range(6)]
    out = run(4, lambda s: stateful.state_machine(s, key="k", fold=count), epochs, workers=3)
    assert out == Counter((time, row(key=k, n=2 * time + i)) for time in range(6) for k in range(7) for i in (1, 2))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda s: stateful.unary(s, key="k", fold=5, state={"n": "i8"}),
            "unary needs a function of a time, a batch, a table and a notificator, not 5",
        ),
        (lambda s: stateful.unary(s, key="k", fold=in_batches, state=None), "unary: say what its state is, such as"),
        (lambda s: stateful.join(s, s, key="k", unique="both"), "unique is 'left' or 'right', the side on which a key"),
        (
            lambda s: stateful.join(s, s, key="k", value=["v"], right_value=["v"]),
            "join: both sides have a column 'v': rename one first",
        ),
        (lambda s: stateful.state_machine(s, key="k", value="v", fold=add), "add post-dates records, and the operator"),
    ],
)
def test_what_cannot_be_built(build: Any, message: str) -> None:
    with pytest.raises(ConstructionError, match=re.escape(message)):
        run(1, build, [[{"k": 1, "v": 1}]], workers=1)


def test_times_must_be_in_one_order() -> None:
    def build(stream: Any) -> Any:
        with stream.scope.nested() as loop:
            return stateful.state_machine(stream.enter(loop), key="k", value="v", fold=add, due=come_back).leave()

    with pytest.raises(ConstructionError, match="state_machine: timestamps must be totally ordered, and those of"):
        run(1, build, [[{"k": 1, "v": 1}]], workers=1)


@pytest.mark.parametrize(
    ("notify", "error", "message"),
    [
        (
            lambda n: n.notify_at(0, [1], amount=1),
            ValueError,
            "a record can be put off until later than 0, not until 0",
        ),
        (lambda n: n.notify_at(1, [1]), TypeError, "a post-dated record has the columns amount, not "),
        (lambda n: n.notify_at(1, [1], amount=1, b=2), TypeError, "has the columns amount, not amount, b"),
    ],
)
def test_what_a_function_of_batches_cannot_post_date(notify: Any, error: type[Exception], message: str) -> None:
    def wrong(time: int, batch: Any, state: Any, notificator: Any) -> None:
        notify(notificator)

    def build(stream: Any) -> Any:
        return stateful.unary(stream, key="k", fold=wrong, state=STATE, pending=PENDING, name="wrong")

    with pytest.raises(error, match=re.escape(message)) as caught:
        run(1, build, [[{"k": 1, "v": 1}]], workers=1)
    assert "in wrong at 0" in notes(caught.value)


def test_a_join_keeps_numbers_only_and_one_type_of_them() -> None:
    def build(left: Any, right: Any) -> Any:
        return stateful.join(left, right, key="k", value=["word"], right_value=["v"])

    with pytest.raises(TypeError, match="join: column 'word' cannot be kept in a join: encode it as integers first"):
        run(1, build, [[{"k": 1, "word": "x"}]], [[{"k": 1, "v": 1}]], workers=1)

    def changing(left: Any, right: Any) -> Any:
        return stateful.join(left, right, key="k", value=["w"], right_value=["v"])

    with pytest.raises(TypeError, match="join: column 'w' is float64, and was int64 before"):
        run(1, changing, [[{"k": 1, "w": 1}], [{"k": 1, "w": 1.5}]], [[{"k": 1, "v": 1}]], workers=1)
