"""What users' programs infer, under `mypy --strict`. Nothing here runs: mypy reads it (see test_typing)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple, Never, assert_type

import numpy as np

import dataflow
import megaphone
from dataflow import InputHandle, Stream, sinks
from dataflow import sources as sources_with_positions
from dataflow.columns import Columns
from dataflow.lowlevel import Capability, Context, InputPort, MessageCapability, Notificator, OutputPort
from dataflow.notebook import LiveRun, live
from dataflow.operators.failing import CheckedStream
from dataflow.operators.latecomers import TimedStream
from dataflow.operators.replay import Event
from dataflow.testing import Rehearsal, out_of_order, play, simulate
from megaphone.assembly import CheckedMigratable, Handle, Migratable

Pair = tuple[str, int]


def inputs(scope: dataflow.Scope) -> None:
    handle, numbers = scope.input(of=int)
    assert_type(handle, InputHandle[int])
    assert_type(numbers, Stream[int])
    handle.send([1, 2])
    handle.send(["one"])  # type: ignore[list-item]
    _, anything = scope.input("name")
    assert_type(anything, Stream[Any])
    unordered, words = scope.unordered_input(of=str)
    unordered.send(["a word"], unordered.capability)
    assert_type(words, Stream[str])
    batches, columns = scope.input(of=Columns)
    batches.send({"key": np.arange(3)})
    assert_type(columns.columns.filter(lambda batch: batch["key"] > 1), Stream[Columns])


def bare(handle: InputHandle) -> None:
    """A handle of whatever records."""
    handle.send([1, "two"])


async def ticks() -> AsyncIterator[float]:
    yield 1.0


def sources(scope: dataflow.Scope) -> None:
    assert_type(scope.source([1, 2, 3], batch=2), Stream[int])
    assert_type(scope.source(lambda: range(10)), Stream[int])
    assert_type(scope.source(ticks()), Stream[float])
    assert_type(scope.source([(0, ["a", "b"]), (3, ["c"])], timed=True), Stream[str])
    assert_type(scope.source(range(3), every="250ms"), Stream[int])
    assert_type(scope.source({"key": np.arange(3)}, batch=2), Stream[Columns])
    assert_type(scope.source(Columns({"key": np.arange(3)})), Stream[Columns])


def connectors(scope: dataflow.Scope) -> None:
    lines = scope.source(sources_with_positions.lines("logs", follow=True), ahead=4)
    assert_type(lines, Stream[str])
    assert_type(scope.source(sources_with_positions.parquet("events")), Stream[Columns])
    rows = sources_with_positions.event_timed(sources_with_positions.json_lines("rows"), "t", "10s", late="stream")
    assert_type(scope.source(rows), TimedStream[Any])  # of which what follows has its types
    assert_type(scope.source(rows).map(len), Stream[int])
    assert_type(scope.source(sources_with_positions.generator(lambda start: range(start, 10))), Stream[int])
    assert_type(lines.sink(sinks.sqlite("out.db", "lines", columns=["line"])), Stream[Never])
    lines.sink(sinks.callback(lambda time, batch: print(batch)))
    assert_type(scope.source(Squares()), Stream[int])


class Squares(sources_with_positions.Partitions[int]):
    async def partitions(self) -> list[str]:
        return ["all"]

    async def read(self, partition: str, position: object | None) -> AsyncIterator[tuple[object, Any, list[int]]]:
        yield 1, None, [1]


def by_record(words: Stream[str]) -> None:
    lengths = words.map(len)
    assert_type(lengths, Stream[int])
    assert_type(words.flat_map(str.split), Stream[str])
    assert_type(words.filter(bool).exchange(lambda word: word[0]).broadcast(), Stream[str])
    assert_type(words.concat(lengths), Stream[str | int])
    assert_type(words.concat(words), Stream[str])
    assert_type(words.scope.concat([words, words]), Stream[str])
    assert_type(words.branch(str.isupper), tuple[Stream[str], Stream[str]])
    assert_type(words.delay(lambda time, word: time + len(word)), Stream[str])
    words.map(lambda word: word.nothing_of_the_kind())  # type: ignore[attr-defined]


def by_key(words: Stream[str], ages: Stream[Pair]) -> None:
    assert_type(words.count(), Stream[int])
    assert_type(words.count(lambda word: word), Stream[tuple[str, int]])
    assert_type(words.count(key=len), Stream[tuple[int, int]])
    assert_type(words.aggregate(len, int, lambda n, _: n + 1), Stream[tuple[int, int]])
    assert_type(words.aggregate(len, int, lambda n, _: n + 1, lambda key, n: str(key + n)), Stream[str])
    assert_type(words.reduce(len, lambda key, group: [(key, word) for word in group]), Stream[tuple[int, str]])
    assert_type(words.join(ages, lambda word: word, lambda age: age[0]), Stream[tuple[str, str, Pair]])
    joined = words.join(ages, lambda word: word, lambda age: age[0], emit=lambda key, word, age: age[1])
    assert_type(joined, Stream[int])


def write(time: int, batch: list[str]) -> None: ...


async def save(time: int, batch: Columns) -> None: ...


def by_batch(words: Stream[str], tables: Stream[Columns], anything: Stream[Any]) -> None:
    assert_type(words.inspect_batch(write), Stream[str])
    assert_type(words.inspect_batch(lambda time, batch: batch[0].upper()), Stream[str])
    words.inspect_batch(lambda time, batch: batch.names)  # type: ignore[attr-defined]
    assert_type(tables.inspect_batch(lambda time, batch: print(batch.names)), Stream[Columns])
    tables.inspect_batch(write)  # type: ignore[arg-type]
    assert_type(anything.inspect_batch(lambda time, batch: print(len(batch))), Stream[Any])
    assert_type(words.concat(words.sink(write)), Stream[str])
    tables.sink(save)
    words.sink(save)  # type: ignore[arg-type]
    anything.sink(save)
    events: list[Event] = []
    assert_type(words.capture(events.append), Stream[str])


def by_operator(words: Stream[str], numbers: Stream[int], tables: Stream[Columns]) -> None:
    def make(context: Context) -> Callable[[InputPort[str], OutputPort[int]], None]:
        def step(input: InputPort[str], output: OutputPort[int]) -> None:
            for capability, batch in input:
                assert_type(batch, list[str])
                output.give(capability, [len(word) for word in batch])
                output.give(capability, batch)  # type: ignore[arg-type]

        return step

    def whatever(input: InputPort, output: OutputPort) -> None:
        for capability, batch in input:
            assert_type(batch, Any)
            output.give(capability, batch)

    def columns(input: InputPort[Columns], output: OutputPort[Columns]) -> None:
        for capability, batch in input:
            assert_type(batch, Columns)
            output.give(capability, batch)

    def both(first: InputPort[str], second: InputPort[int], output: OutputPort[Pair]) -> None: ...

    def count(capability: MessageCapability, batch: list[str], output: OutputPort[int], due: Notificator) -> None: ...

    def send(capability: Capability, output: OutputPort[int], due: Notificator) -> None: ...

    assert_type(words.unary("lengths", make, frontier=True), Stream[int])
    numbers.unary("lengths", make)  # type: ignore[arg-type]
    assert_type(words.unary("as they are", lambda _: whatever), Stream[Any])
    assert_type(tables.unary("as they are", lambda _: columns), Stream[Columns])
    assert_type(words.binary(numbers, "pairs", lambda _: both), Stream[Pair])
    assert_type(words.unary_notify("counts", count, send), Stream[int])


def loops(numbers: Stream[int]) -> None:
    def collatz(inner: Stream[int]) -> tuple[Stream[int], Stream[str]]:
        return inner.filter(lambda n: n > 1).map(lambda n: n // 2), inner.map(str)

    def halves(inner: Stream[int]) -> Stream[int]:
        return inner.filter(lambda n: n > 1).map(lambda n: n // 2)

    assert_type(numbers.iterate(collatz), Stream[str])
    assert_type(numbers.iterate(halves), Stream[int])


async def main(worker: dataflow.Worker, size: int, name: str = "") -> dict[str, int]:
    return {name: size}


async def plain(worker: dataflow.Worker) -> int:
    return worker.index


def running() -> None:
    assert_type(dataflow.execute(plain, workers=2), list[int])
    assert_type(dataflow.execute(main, 3, "x", in_process=True), list[dict[str, int]])
    assert_type(simulate(main, 3, "x", seed=4), list[dict[str, int]])
    dataflow.execute(main, "three", "x")  # type: ignore[arg-type]


def migration(control: InputHandle[Any], counts: Stream[Any]) -> None:
    controller = megaphone.Controller(control, counts)
    controller.migrate(to=np.zeros(16, "u4"))
    controller.migrate(to=[0] * 16, strategy=megaphone.fluid(), pins={70: None})
    control.send([megaphone.Assign([0, 1]), megaphone.Assign(np.zeros(2, "u4")), megaphone.Move(1, 0)])
    assert_type(controller.configuration, tuple[int, ...])


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"})
def tally(key: Any, state: Any) -> Any:
    state.count += 1
    return key, state.count


def lengths(time: int, words: list[str], state: dict[str, int], notificator: Any) -> list[tuple[str, int]]:
    return [(word, len(word)) for word in words]


def totals(key: str, value: int, total: int | None) -> tuple[int, list[float]]:
    return (total or 0) + value, [value / 2]


def both(time: int, words: list[str], ages: list[Pair], state: set[str], n1: Any, n2: Any) -> list[bytes]:
    return []


def batches(time: int, batch: Columns, state: Any, notificator: Any) -> Columns:
    return batch


def migratable_rows(control: Stream[megaphone.Move], words: Stream[str], ages: Stream[Pair], any: Stream[Any]) -> None:
    counts = megaphone.unary(control, words, key=lambda word: word, fold=lengths, bins=4, by_key=True)
    assert_type(counts, Migratable[tuple[str, int]])
    assert_type(counts.map(lambda pair: pair[1]), Stream[int])
    assert_type(counts.handle, Handle)
    assert_type(counts.handle.bins, int)
    assert_type(counts.handle.store.byte_count, int)
    assert_type(megaphone.state_machine(control, ages, fold=totals), Migratable[float])
    assert_type(megaphone.state_machine(control, any, fold=totals), Migratable[float])
    halves = megaphone.state_machine(control, ages, fold=lambda key, value, total: ((total or 0) + value, [key]))
    assert_type(halves, Migratable[str])
    met = megaphone.binary(control, words, ages, key=str, right_key=lambda age: age[0], fold=both, state=set)
    assert_type(met, Migratable[bytes])
    megaphone.Group([counts, met])
    megaphone.unary(control, words, key=len, fold=lengths, pending={"x": "i8"})  # type: ignore[call-overload]
    megaphone.unary(control, ages, key=len, fold=lengths)  # type: ignore[arg-type]


def windowed(control: Stream[megaphone.Replan], words: Stream[Pair], ages: Stream[Pair], any: Stream[Any]) -> None:
    query = megaphone.plans.Query(streams=("w", "a"), on=0, window=60, where={("w", "a"): lambda w, a: w[1] < a[1]})
    joined = megaphone.window_join(control, {"w": words, "a": ages}, query, plan="w a", bins=16)
    assert_type(joined, Migratable[tuple[Pair, ...]])
    assert_type(joined.map(len), Stream[int])
    assert_type(megaphone.window_join(control, {"w": words, "a": any}, query, plan="w a"), Migratable[tuple[Any, ...]])
    megaphone.window_join(control, {"w": words, "a": ages}, query)  # type: ignore[call-overload]
    megaphone.plans.Query(streams=("w", "a"), on=0, window="60")  # type: ignore[arg-type]


def replans(control: InputHandle[Any], joined: Migratable[tuple[Pair, ...]]) -> None:
    control.send([megaphone.Replan("a (b c)", method="hybmig"), megaphone.Replan(None, bins=[1, 2])], at=5)
    controller = megaphone.Controller(control, joined)
    controller.replan("a (b c)", megaphone.batched(16), to=[0] * 256)
    controller.replan(megaphone.Replan("a (b c)", "moving-state"))
    assert_type(controller.plans, list[str])
    megaphone.Replan("a (b c)", order="any")  # type: ignore[arg-type]


def migratable_columns(control: Stream[megaphone.Move], stream: Stream[Columns]) -> None:
    assert_type(megaphone.state_machine(control, stream, key="key", fold=tally), Migratable[Columns])
    assert_type(megaphone.unary(control, stream, key="key", fold=batches, state={"n": "i8"}), Migratable[Columns])
    assert_type(megaphone.join(control, stream, stream, key="key", value=["x"]), Migratable[Columns])
    assert_type(megaphone.binary(control, stream, stream, key="k", fold=tally, right_fold=tally), Migratable[Columns])
    megaphone.state_machine(control, stream, key="key", fold=totals)  # type: ignore[call-overload]
    megaphone.unary(control, stream, key="key", fold=batches, state={"n": "i8"}, by_key=True)  # type: ignore[call-overload]


class Order(NamedTuple):
    customer: str
    amount: int


def parsed(message: sources_with_positions.KafkaRecord) -> Order:
    return Order((message.key or b"").decode(), int(message.value or b"0"))


def servers(scope: dataflow.Scope) -> None:
    """The types of records flow from what a source gives, through functions and folds, to sinks."""
    s = sources_with_positions
    assert_type(scope.source(s.kafka("b:9092", "t")), Stream[s.KafkaRecord])
    orders = scope.source(s.kafka("b:9092", "t", decode=parsed))
    assert_type(orders, Stream[Order])
    assert_type(orders.map(lambda order: (order.customer, order.amount)), Stream[tuple[str, int]])
    orders.map(lambda order: order.price)  # type: ignore[attr-defined]
    assert_type(scope.source(s.nats("nats://h", "S", decode=lambda message: message.data)), Stream[bytes])
    assert_type(scope.source(s.redis("redis://h", ["a"])), Stream[s.RedisRecord])
    assert_type(scope.source(s.postgres_changes("host=h", ["t"])).map(lambda change: change.table), Stream[str])
    assert_type(scope.source(s.server_events("http://h")).map(lambda event: event.id), Stream[str])
    hooks = s.webhook(8080, decode=lambda request: len(request.body))
    assert_type(scope.source(s.journaled(hooks, "journal")), Stream[int])
    assert_type(scope.source(s.at_most_once(hooks)), Stream[int])
    assert_type(scope.source(s.websocket("ws://h")), Stream[str | bytes])
    assert_type(scope.source(s.stdin()), Stream[str])
    assert_type(scope.source(s.arrow("tables")), Stream[Columns])
    assert_type(sinks.kafka("b:9092", "t"), sinks.AtLeastOnce)
    assert_type(orders.sink(sinks.nats("nats://h", "S", "s")), Stream[Never])


def failures(stream: Stream[str], control: Stream[Any]) -> None:
    assert_type(stream.map(int), Stream[int])
    numbers = stream.map(int, errors="stream")
    assert_type(numbers, CheckedStream[int])
    assert_type(numbers.filter(lambda n: n > 3), Stream[int])
    assert_type(numbers.errors, Stream[tuple[Any, str]])
    assert_type(stream.flat_map(str.split, errors="stream"), CheckedStream[str])
    pairs = numbers.map(lambda n: (n % 3, n))
    fold: Callable[[int, int, int | None], tuple[int, list[int]]] = lambda key, n, total: ((total or 0) + n, [n])  # noqa: E731
    totals = megaphone.state_machine(control, pairs, fold=fold, errors="stream")
    assert_type(totals, CheckedMigratable[int])
    assert_type(totals.errors, Stream[tuple[Any, str]])


def kit(rehearsal: Rehearsal) -> None:
    assert_type(rehearsal.source({"a": [1, 2]}), sources_with_positions.Partitions[int])
    assert_type(out_of_order([(1, "a")], lambda event: event[0], 5).late, list[tuple[int, str]])
    assert_type(play(lambda numbers: numbers.map(str), [[1, 2]]), list[tuple[Any, Any]])


async def returns_an_order(worker: dataflow.Worker) -> Order:
    return Order("ann", worker.index)


def background() -> None:
    assert_type(live(returns_an_order, workers=2), LiveRun[Order])
    assert_type(live(returns_an_order).wait(), list[Order])
