"""Only dataflows that have something to do are looked at, and none keeps the others waiting."""

import random
from collections.abc import Callable

import pytest

import dataflow
from dataflow.lowlevel import Context, InputPort, OutputPort
from dataflow.run.clock import Clock
from dataflow.run.dataflow import Dataflow
from dataflow.run.meters import Sampler
from dataflow.run.worker import pump_of
from dataflow.testing import simulate


def test_a_thousand_idle_dataflows_are_not_stepped(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped: list[int] = []
    looked: list[int] = []
    sampled: list[int] = []
    number_of: dict[Sampler, int] = {}
    step, busy, look, choose = Dataflow.step, Dataflow.busy, Sampler.look, Sampler.choose

    def sampling(self: Sampler, began: int, now: int) -> None:
        sampled.append(number_of[self])
        look(self, began, now)

    def choosing(self: Sampler) -> None:
        sampled.append(number_of[self])
        choose(self)

    def counted(self: Dataflow, rounds: int = 16) -> None:
        stepped.append(self.number)
        step(self, rounds)

    def looked_at(self: Dataflow) -> bool:
        looked.append(self.number)
        assert busy.fget is not None
        return bool(busy.fget(self))

    async def main(worker: dataflow.Worker) -> None:
        for _ in range(1000):
            with worker.dataflow() as scope:
                scope.input()[1].map(lambda n: n).probe()
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.map(lambda n: n).probe()
        numbers.advance_to(1)
        await probe.wait_passed(0)  # and all have begun
        pump = pump_of(worker)
        number_of.update((pump.meter.sampler(each), each.number) for each in pump.dataflows)
        monkeypatch.setattr(Dataflow, "step", counted)
        monkeypatch.setattr(Dataflow, "busy", property(looked_at))
        monkeypatch.setattr(Sampler, "look", sampling)
        monkeypatch.setattr(Sampler, "choose", choosing)
        for epoch in range(1, 11):
            numbers.send([epoch])
            numbers.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
        monkeypatch.undo()

    dataflow.execute(main, warn_after=None)
    assert set(stepped) == set(looked) == {1000}
    assert len(stepped) <= 20
    assert set(sampled) <= {1000}


def _require_stirred(worker: dataflow.Worker) -> None:
    pump = pump_of(worker)
    assert len(set(pump.stirred)) == len(pump.stirred)
    for each in pump.dataflows:
        assert each.stirred == (each in pump.stirred)
        assert each.stirred or not each.busy


@pytest.mark.parametrize("seed", range(30))
def test_what_has_something_to_do_is_on_the_list(seed: int) -> None:
    async def main(worker: dataflow.Worker) -> list[int]:
        rng, seen, handles = random.Random(f"{seed} {worker.index}"), [], []
        for _ in range(3):
            with worker.dataflow() as scope:
                handle, stream = scope.input()
                out = stream.exchange(lambda n: n).map(lambda n: n).inspect(lambda _, n: seen.append(n))
                out.probe()
                handles.append(handle)
            _require_stirred(worker)
        for epoch in range(8):
            for handle in rng.sample(handles, 2):
                if rng.random() < 0.7:
                    handle.send([epoch])
                    _require_stirred(worker)
                handle.advance_to(epoch + 1)
                _require_stirred(worker)
                if rng.random() < 0.3:
                    await worker.step()
                _require_stirred(worker)
        return seen

    several = simulate(main, workers=2, seed=seed)
    expected = sorted(n for seen in dataflow.execute(main, workers=2, in_process=True) for n in seen)
    assert sorted(n for seen in several for n in seen) == expected


class _SlowClock(Clock):
    """A millisecond passes whenever somebody looks."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        self._now += 0.001
        return self._now


def test_a_busy_dataflow_lets_others_have_their_turn() -> None:
    order: list[str] = []

    async def main(worker: dataflow.Worker) -> None:
        pump_of(worker).clock = _SlowClock()

        def make(context: Context) -> Callable[[InputPort[int], OutputPort[int]], None]:
            def step(input: InputPort[int], output: OutputPort[int]) -> None:
                order.append("busy")
                context.activate()

            context.activate()
            return step

        with worker.dataflow() as busy:
            busy.input()[1].unary("busy", make).probe()
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.inspect(lambda time, n: order.append("other")).probe()
        for epoch in range(10):
            numbers.send([epoch])
            numbers.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
        worker.drop_dataflow(busy)

    dataflow.execute(main)
    assert order.count("other") == 10
    assert order.count("busy") <= 40  # sixteen rounds in each turn would be 160
