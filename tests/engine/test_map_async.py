"""Asynchronous functions in the middle of a dataflow, on a virtual clock."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import trio

from dataflow import Worker
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.operators.asynchronous import Retry
from dataflow.testing import simulate


class Service:
    """Takes a random time for each question, and knows how many are under way."""

    def __init__(self, seed: int, failing: int = 0) -> None:
        self.chance = Random(seed)
        self.now = 0
        self.most = 0
        self.asked: list[Any] = []
        self.failing = failing  # how often each question fails first
        self.tries: dict[Any, int] = {}

    async def ask(self, question: Any) -> Any:
        self.now += 1
        self.most = max(self.most, self.now)
        self.asked.append(question)
        try:
            await trio.sleep(self.chance.choice([0, 0.5, 1, 5]))
        finally:
            self.now -= 1
        self.tries[question] = self.tries.get(question, 0) + 1
        if self.tries[question] <= self.failing:
            raise OSError(f"no answer to {question}")
        return question * 10


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("ordered", [True, False])
def test_answers_come_at_the_records_times(seed: int, ordered: bool) -> None:
    chance = Random(seed)
    peers, concurrency = chance.randint(1, 3), chance.choice([1, 2, 5, 64])
    services = [Service(seed + worker) for worker in range(peers)]
    sent = [[[chance.randrange(1000) for _ in range(chance.randint(0, 5))] for _ in range(5)] for _ in range(peers)]

    async def main(worker: Worker) -> list[Any]:
        out: list[Any] = []
        done: list[int] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            answers = stream.map_async(services[worker.index].ask, concurrency=concurrency, ordered=ordered)
            probe = answers.inspect(lambda time, answer: out.append((time, answer))).probe()
        for time, questions in enumerate(sent[worker.index]):
            handle.send(questions)
            handle.advance_to(time + 1)
        await probe.wait_passed(2)
        done.append(len([each for each in out if each[0] <= 2]))
        handle.close()
        assert done == [sum(map(len, sent[worker.index][:3]))]
        return out

    results = simulate(main, workers=peers, seed=seed)
    for service, questions, found in zip(services, sent, results, strict=True):
        expected = [(time, question * 10) for time, some in enumerate(questions) for question in some]
        assert (found if ordered else sorted(found)) == (expected if ordered else sorted(expected))
        assert service.most <= concurrency


def test_without_order_a_slow_one_holds_no_other_back() -> None:
    async def ask(question: int) -> int:
        await trio.sleep(question)
        return question

    async def main(worker: Worker, ordered: bool) -> list[int]:
        out: list[int] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map_async(ask, ordered=ordered).inspect(lambda _, answer: out.append(answer))
        handle.send([3, 1, 2])
        return out

    assert simulate(main, True, workers=1) == [[3, 1, 2]]
    assert simulate(main, False, workers=1) == [[1, 2, 3]]


@pytest.mark.parametrize(("retry", "fails"), [(2, 0), (Retry(3, wait="5s", factor=3), 3), (1, 2)])
def test_calls_are_tried_again(retry: Any, fails: int) -> None:
    service = Service(1, fails)
    began: list[float] = []

    async def main(worker: Worker) -> list[Any]:
        out: list[Any] = []
        began.append(trio.current_time())
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            answers = stream.map_async(service.ask, retry=retry, errors="stream")
            answers.inspect(lambda _, answer: out.append(answer))
            answers.errors.inspect(lambda time, pair: out.append((time, *pair)))
            probe = answers.probe()
        handle.send([7])
        handle.close()
        await probe.wait_done()
        began.append(trio.current_time())
        return out

    times = retry.times if isinstance(retry, Retry) else retry
    assert simulate(main, workers=1) == [[70] if fails <= times else [(0, 7, "OSError: no answer to 7")]]
    assert len(service.asked) == min(fails, times) + 1
    if isinstance(retry, Retry):
        assert began[1] - began[0] >= 5 + 15 + 45


def test_a_call_that_fails_is_raised_with_its_record() -> None:
    service = Service(1, 9)

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map_async(service.ask, retry=1, name="enrich")
        handle.send([7], at=3)

    with pytest.raises(OSError, match="no answer to 7") as error:
        simulate(main, workers=1)
    notes = "\n".join(error.value.__notes__)
    assert "enrich: tried 2 times" in notes and "7" in notes and "enrich" in notes


def test_a_call_that_takes_too_long_is_cancelled() -> None:
    ended: list[str] = []

    async def ask(question: int) -> int:
        try:
            await trio.sleep(question)
        except trio.Cancelled:
            ended.append(f"cancelled {question}")
            raise
        return question

    async def main(worker: Worker) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            answers = stream.map_async(ask, timeout="10s", errors="stream")
            answers.inspect(lambda _, answer: out.append(answer))
            answers.errors.inspect(lambda _, pair: out.append(pair))
        handle.send([1, 3600, 2])
        return out

    (out,) = simulate(main, workers=1)
    assert sorted(out, key=str) == sorted([1, 2, (3600, "TimeoutError: map_async: no answer within 10 s")], key=str)
    assert ended == ["cancelled 3600"]


def test_when_one_fails_the_others_are_cancelled() -> None:
    ended: list[int] = []

    async def ask(question: int) -> int:
        try:
            await trio.sleep(question)
        except trio.Cancelled:
            ended.append(question)
            raise
        raise ValueError("no")

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map_async(ask)
        handle.send([1, 3600, 7200])

    with pytest.raises(ValueError, match="no"):
        simulate(main, workers=1)
    assert sorted(ended) == [3600, 7200]


@pytest.mark.parametrize("columns", [False, True])
def test_batches_of_rows_and_of_columns(columns: bool) -> None:
    sizes: list[int] = []

    async def ask(batch: Any) -> Any:
        sizes.append(len(batch))
        await trio.sleep(1)
        return Columns({"n": batch["n"] * 2}) if columns else [n * 2 for n in batch]

    async def main(worker: Worker) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            answers = stream.map_async_batches(ask, size=4, concurrency=2)
            answers.inspect_batch(lambda time, batch: out.extend(batch["n"].tolist() if columns else batch))
        handle.send({"n": list(range(10))} if columns else list(range(10)))
        return out

    assert simulate(main, workers=1) == [[n * 2 for n in range(10)]]
    assert sizes == [4, 4, 2]


def test_explain_names_who_waits() -> None:
    texts: list[str] = []

    async def ask(question: int) -> int:
        await trio.sleep(100)
        return question

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map_async(ask, name="enrich").probe()
        handle.send([1])
        handle.close()
        await trio.sleep(50)
        texts.append(str(worker.explain()))

    simulate(main, workers=1)
    assert "enrich" in texts[0] and "capabilit" in texts[0]


def test_what_is_refused() -> None:
    def plain(question: int) -> int:
        return question

    async def ask(question: int) -> int:
        return question

    async def main(worker: Worker, function: Any, options: dict[str, Any]) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            stream.map_async(function, **options)

    for function, options, message in [
        (plain, {}, "needs an `async def` function, and plain is none: use map"),
        (7, {}, "needs an asynchronous function, not 7"),
        (ask, {"concurrency": 0}, "concurrency is at least 1, not 0"),
        (ask, {"timeout": "never"}, "timeout='never'"),
        (ask, {"timeout": 0}, "a timeout is above zero, not 0"),
        (ask, {"retry": -1}, "a retry is so many times"),
        (ask, {"errors": "ignore"}, "errors is 'raise' or 'stream', not 'ignore'"),
    ]:
        with pytest.raises(ConstructionError, match=message):
            simulate(main, function, options, workers=1)


def test_a_program_that_recovers_asks_again() -> None:
    async def ask(question: int) -> int:
        await trio.sleep(1)
        return question

    async def main(worker: Worker) -> list[int]:
        out: list[int] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map_async(ask).inspect(lambda _, answer: out.append(answer))
        handle.send([1, 2])
        return out

    assert simulate(main, workers=1, recovery="memory://map async") == [[1, 2]]
