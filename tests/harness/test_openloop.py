"""The driver on a virtual clock, where latencies are exactly what a queue with one server makes them; and for real."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import trio

import dataflow
from dataflow.comm.codec import decode, encode
from dataflow.testing import simulate
from megaphone.harness import Episodes, LoadSchedule, OpenLoop, Outcome, Recording, Snapshot, drive, openloop
from megaphone.harness.recording import completions

MS = 1_000_000
NEAR = 3000  # nanoseconds: no two of a thousand sleepers of a simulation wake at the same one


def queue(schedule: LoadSchedule, services: Sequence[float]) -> list[int]:
    """When each epoch is complete, if a single server takes them in turn and so many seconds for each."""
    free, done = 0.0, []
    for epoch, service in enumerate(services):
        free = max(free, schedule.due_at(epoch)) + service
        done.append(round(free * 1e9))
    return done


def served(
    schedule: LoadSchedule, service: Callable[[int], float], log: list[Any] | None = None, **options: Any
) -> Any:
    """A program of one worker whose sink takes `service(epoch)` seconds for each epoch; logs (when, epoch) sent."""

    async def main(worker: dataflow.Worker) -> Recording:
        async def write(time: int, batch: list[int]) -> None:
            await trio.sleep(sum(service(epoch) for epoch in batch))

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.sink(write).probe()
        started = -1.0

        def send(epoch: int, low: int, high: int) -> None:
            nonlocal started
            started = trio.current_time() - schedule.due_at(0) if started < 0 else started
            if log is not None:
                log.append((round((trio.current_time() - started) * 1e9), epoch, handle.time))
            handle.send([epoch])

        return await drive(worker, schedule, send, probe, inputs=[handle], **options)

    return main


@pytest.mark.parametrize("seed", range(4))
def test_latencies_are_those_of_a_queue(seed: int) -> None:
    schedule = LoadSchedule(rate=20_000, duration=0.1)
    services = [0.0004 if epoch % 20 else 0.0085 for epoch in range(schedule.epochs)]
    (recording,) = simulate(served(schedule, services.__getitem__), workers=1, seed=seed)
    done, complete = completions(recording)
    assert complete == schedule.epochs and recording["gave_up"] is None
    assert done == pytest.approx(queue(schedule, services), abs=NEAR)  # of a clock in seconds and floats


def test_each_record_is_charged_from_when_it_was_due() -> None:
    schedule = LoadSchedule(rate=2000, duration=0.01)
    (recording,) = simulate(served(schedule, lambda epoch: 0.0002), workers=1)
    outcome = Outcome.of([recording], window=0.005)
    assert len(outcome.total) == 20
    # Two records an epoch: one was due as it began, one in the middle; both are complete 0.2 ms after its end.
    assert outcome.total.least == pytest.approx(0.7 * MS, abs=NEAR)
    assert outcome.total.greatest == pytest.approx(1.2 * MS, abs=NEAR)
    assert "2,000 records/s for 10 ms were sustained" in outcome.statement


def test_a_late_system_is_charged_for_its_lateness_and_sent_what_is_due_in_one_go() -> None:
    schedule, log = LoadSchedule(rate=1000, duration=0.04), list[Any]()
    services = [0.0105 if epoch == 3 else 0.0 for epoch in range(40)]
    (recording,) = simulate(served(schedule, services.__getitem__, log, outstanding=4), workers=1)
    done, _ = completions(recording)
    assert done == pytest.approx(queue(schedule, services), abs=NEAR)
    when = [at for at, _, _ in log]
    # Epoch 3 is sent at 4 ms and stalls until 14.5 ms; 4 to 6 fill the bound, and the rest of what is due comes then.
    assert when[:7] == pytest.approx([(epoch + 1) * MS for epoch in range(7)], abs=NEAR)
    assert when[7:14] == pytest.approx([14.5 * MS] * 7, abs=NEAR)
    assert when[14:] == pytest.approx([(epoch + 1) * MS for epoch in range(14, 40)], abs=NEAR)
    assert all(time == epoch for _, epoch, time in log), "each epoch has its own time"


def test_late_epochs_may_share_a_time() -> None:
    schedule, log = LoadSchedule(rate=1000, duration=0.04), list[Any]()
    services = [0.0105 if epoch == 3 else 0.0 for epoch in range(40)]
    main = served(schedule, services.__getitem__, log, outstanding=4, coalesce=True)
    (recording,) = simulate(main, workers=1)
    assert completions(recording)[1] == 40
    times = [time for _, _, time in log]
    assert times[:7] == list(range(7)) and times[14:] == list(range(14, 40)), "those in time have their own"
    assert times[7] == 7 and times == sorted(times)
    assert len(set(times[7:14])) <= 4, "seven that are late, in the few goes that the bound of four allows"


def test_overload_is_charged_stated_and_ends() -> None:
    schedule, log = LoadSchedule(rate=10_000, duration=0.05), list[Any]()
    main = served(schedule, lambda epoch: 0.003, log, outstanding=5, grace=0.021)
    (recording,) = simulate(main, workers=1)
    assert recording["gave_up"] == pytest.approx(71 * MS, abs=NEAR)
    done, complete = completions(recording)
    assert complete == 23  # at 4, 7, ..., 70 ms
    assert recording["sent"] <= complete + 5 < schedule.epochs
    assert (done[complete:] == recording["gave_up"]).all()
    outcome = Outcome.of([recording], window=0.01)
    assert not outcome.sustained and len(outcome.total) == schedule.records
    assert outcome.unsent == schedule.epochs - recording["sent"] > 0
    assert "were NOT sustained: after 71 ms 270 of 500 records were not complete" in outcome.statement
    # Nobody is let off: the last epoch, never sent, waited for all of the grace.
    assert outcome.total.least >= 3 * MS
    assert outcome.timeline.rows([1])[-1][1][0] == pytest.approx(31 * MS, abs=NEAR)
    assert outcome.document()["sustained"] is False


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_every_record_is_sent_once_at_its_epoch_s_time_whoever_sends_it(workers: int, seed: int) -> None:
    seen: list[tuple[int, int]] = []

    async def main(worker: dataflow.Worker) -> Recording:
        schedule = LoadSchedule(rate=2500, duration=0.02, workers=workers, first=1, ticks=10)
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.exchange(lambda n: n).inspect(lambda time, n: seen.append((time, n))).probe()

        def send(epoch: int, low: int, high: int) -> None:
            assert handle.time == schedule.time(epoch)
            handle.send(range(low, high))

        return await drive(worker, schedule, send, probe, inputs=[handle])

    recordings = simulate(main, workers=workers, seed=seed)
    schedule = LoadSchedule.from_dict(recordings[0]["schedule"])
    expected = [
        (1 + 10 * epoch, n)
        for epoch in range(20)
        for n in range(schedule.first_record(epoch), schedule.first_record(epoch + 1))
    ]
    assert sorted(seen) == expected and len(expected) == 50
    for recording in recordings:
        done, _ = completions(recording)
        # Nothing takes any virtual time: every epoch is complete when it is sent, on all workers.
        assert done == pytest.approx((np.arange(20) + 1) * MS, abs=NEAR)
    again = simulate(main, workers=workers, seed=seed)
    machine = {"memory": None, "stolen": None}  # what the process and its host do beside the run does not replay
    assert [{**r, **machine} for r in again] == [{**r, **machine} for r in recordings], "a seed replays"


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_in_step_all_workers_send_the_same_epochs_together(workers: int, seed: int) -> None:
    """One of them is late again and again, since its sink is slow; the others send what it sends, and when."""
    schedule = LoadSchedule(rate=3000, duration=0.05, workers=workers, first=1, ticks=10)
    services = [0.0045 if epoch % 11 == 3 else 0.0 for epoch in range(schedule.epochs)]
    logs: dict[int, list[tuple[int, int]]] = {index: [] for index in range(workers)}
    arrived: list[int] = []

    async def main(worker: dataflow.Worker) -> Recording:
        async def write(time: int, batch: list[tuple[int, int, int]]) -> None:
            arrived.extend(record for _, _, record in batch)
            await trio.sleep(sum(services[epoch] for epoch in {epoch for sender, epoch, _ in batch if sender == 0}))

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.exchange(lambda _: workers - 1).sink(write).probe()

        def send(epoch: int, low: int, high: int) -> None:
            assert handle.time <= schedule.time(epoch)
            logs[worker.index].append((handle.time, epoch))
            handle.send([(worker.index, epoch, record) for record in range(low, high)])

        return await drive(worker, schedule, send, probe, inputs=[handle], in_step=True)

    recordings = simulate(main, workers=workers, seed=seed)
    assert all(log == logs[0] for log in logs.values())
    assert [epoch for _, epoch in logs[0]] == list(range(schedule.epochs))
    assert sorted(arrived) == list(range(schedule.records))
    together: dict[int, list[int]] = {}
    for time, epoch in logs[0]:
        together.setdefault(time, []).append(epoch)
    assert len(together) < schedule.epochs, "some were sent together"
    assert all(time == schedule.time(epochs[0]) for time, epochs in together.items())
    # As a server that takes all that is due at once, for as long as they take together.
    free, expected = 0.0, list[int]()
    for epochs in together.values():
        free = max(free, schedule.due_at(epochs[0])) + sum(services[epoch] for epoch in epochs)
        expected += [round(free * 1e9)] * len(epochs)
    for recording in recordings:
        assert completions(recording)[0] == pytest.approx(expected, abs=NEAR)


@pytest.mark.parametrize("workers", [1, 2])
def test_in_step_no_more_is_sent_at_one_time_than_makes_sense(workers: int) -> None:
    schedule = LoadSchedule(rate=openloop._ENOUGH * 100, duration=0.1, workers=workers)  # a tenth of that an epoch
    sent: list[tuple[int, int]] = []

    async def main(worker: dataflow.Worker) -> Recording:
        async def write(time: int, batch: list[int]) -> None:
            await trio.sleep(0.03 if time == 0 else 0)

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.sink(write).probe()

        def send(epoch: int, low: int, high: int) -> None:
            sent.append((handle.time, epoch))
            handle.send([epoch])

        return await drive(worker, schedule, send, probe, inputs=[handle], in_step=True)

    simulate(main, workers=workers)
    counts = Counter(time for time, _ in sent)
    assert max(counts.values()) == 10 * workers


@pytest.mark.parametrize("workers", [1, 2])
def test_in_step_overload_ends_for_all(workers: int) -> None:
    schedule = LoadSchedule(rate=10_000, duration=0.05, workers=workers)

    async def main(worker: dataflow.Worker) -> Recording:
        async def write(time: int, batch: list[int]) -> None:
            await trio.sleep(0.003 * len(batch))

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.sink(write).probe()
        return await drive(
            worker, schedule, lambda *_: handle.send([1]), probe, inputs=[handle], in_step=True, grace=0.021
        )

    recordings = simulate(main, workers=workers)
    assert all(recording["gave_up"] == pytest.approx(71 * MS, abs=NEAR) for recording in recordings)
    assert not Outcome.of(recordings, window=0.01).sustained


def test_the_driver_sleeps_while_there_is_nothing_to_do() -> None:
    class Steps(trio.abc.Instrument):
        taken = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.taken += 1

    steps = Steps()
    schedule = LoadSchedule(rate=1, duration=30_000, epoch=10_000)
    program = served(schedule, lambda epoch: 5_000.0, memory_every=10_000, grace=6_000)

    async def main(worker: dataflow.Worker) -> Recording:
        trio.lowlevel.add_instrument(steps)
        recording: Recording = await program(worker)
        return recording

    (recording,) = simulate(main, workers=1)
    assert recording["at"] == pytest.approx([15e12, 25e12, 35e12], rel=1e-9)
    assert steps.taken < 200


def test_episodes_memory_and_snapshots_are_on_the_run_s_clock() -> None:
    schedule, episodes, seen = LoadSchedule(rate=1000, duration=2), Episodes(), list[Snapshot]()

    async def main(worker: dataflow.Worker) -> Recording:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.probe()

        def send(epoch: int, low: int, high: int) -> None:
            episodes.follow("fluid" if 500 <= epoch < 750 else None)
            handle.send(range(low, high))

        loop = OpenLoop(
            worker,
            schedule,
            send,
            probe,
            inputs=[handle],
            episodes=episodes,
            watch=seen.append,
            watch_every=0.6,
            memory_every=0.3,
        )
        return await loop.run()

    (recording,) = decode(encode(simulate(main, workers=1)))
    ((name, begin, end),) = recording["episodes"]
    assert (name, begin, end) == ("fluid", pytest.approx(501 * MS, abs=NEAR), pytest.approx(751 * MS, abs=NEAR))
    assert recording["memory_at"] == pytest.approx([*range(0, 2000 * MS, 300 * MS), 2000 * MS], abs=NEAR)
    assert all(size > 1 << 20 for size in recording["memory"])
    assert [snapshot.seconds for snapshot in seen] == pytest.approx([0.6, 1.2, 1.8], abs=NEAR / 1e9)
    assert [snapshot.under_way for snapshot in seen] == ["fluid", None, None]
    assert seen[1].completed == pytest.approx(1000, rel=0.01)
    assert seen[1].latencies_ms == pytest.approx((1, 1, 1), rel=0.01)
    assert seen[1].behind <= 0.001 and seen[1].outstanding <= 1


def test_the_run_begins_when_what_was_loaded_before_is_complete() -> None:
    async def main(worker: dataflow.Worker) -> Recording:
        async def write(time: int, batch: list[int]) -> None:
            await trio.sleep(60 if time == 0 else 0)

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.sink(write).probe()
        handle.send([worker.index])
        schedule = LoadSchedule(rate=1000, duration=0.01, workers=worker.peers, first=1)
        return await drive(worker, schedule, lambda *_: handle.send([1]), probe, inputs=[handle])

    for recording in simulate(main, workers=2):
        assert completions(recording)[0] == pytest.approx((np.arange(10) + 1) * MS, abs=NEAR)


async def real(worker: dataflow.Worker) -> Recording:
    """A short run on whatever clock there is."""
    schedule = LoadSchedule(rate=20_000, duration=0.2, epoch=0.002, workers=worker.peers)
    with worker.dataflow() as scope:
        handle, stream = scope.input()
        probe = stream.exchange(lambda n: n).map(str).probe()
    return await drive(
        worker, schedule, lambda _, low, high: handle.send(range(low, high)), probe, inputs=[handle], grace=60
    )


REAL: list[dict[str, Any]] = [
    {"workers": 1},
    {"workers": 2},
    {"workers": 2, "in_process": True},
    {"workers": 2, "in_process": True, "limit": 100},  # bytes: the driver waits for room again and again
]


@pytest.mark.parametrize("options", REAL, ids=str)
def test_real_workers_complete_it_all(options: dict[str, Any]) -> None:
    outcome = Outcome.of(dataflow.execute(real, **options), window=0.1)
    assert outcome.sustained
    assert len(outcome.total) == outcome.schedule.records == 4000
    assert outcome.total.least >= 0
    assert sorted(outcome.memory) == list(range(options["workers"]))


def test_misuse_is_refused() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.probe()

        def attempt(**options: Any) -> None:
            schedule = options.pop("schedule", LoadSchedule(1, 1))
            OpenLoop(worker, schedule, lambda *_: None, probe, **{"inputs": [handle], **options})

        with pytest.raises(ValueError, match="a schedule for 2 workers, and there are 1"):
            attempt(schedule=LoadSchedule(1, 1, workers=2))
        with pytest.raises(ValueError, match="inputs must name"):
            attempt(inputs=[])
        with pytest.raises(ValueError, match="outstanding must be a positive number"):
            attempt(outstanding=0)

    simulate(main, workers=1)


def test_what_send_raises_comes_out_as_it_is() -> None:
    async def main(worker: dataflow.Worker) -> Recording:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.probe()

        def send(epoch: int, low: int, high: int) -> None:
            raise LookupError("no such record")

        return await drive(worker, LoadSchedule(1000, 1), send, probe, inputs=[handle])

    with pytest.raises(LookupError, match="no such record"):
        simulate(main, workers=1)
