# examples/live_planning.py: statistics to Parquet logs, logs to tables on Spark, tables to migrations, while records come
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
import trio
import dataflow
import megaphone
from planners.live import LiveTables, LoadLog, spark_maker
from planners.loop import Driver, Loop, by_intervals

BINS, WORKERS, CAPACITY = 16, 3, 64.0  # a worker bears so many records in an epoch
DAY = [1, 1, 2, 3, 2, 1, 2, 3, 3, 2, 1, 2]  # so many workers are needed
HOT = 5  # a key that lives apart from its bin: its load is in the log, too
OPTIONS = [
    "--nodes", f"1:{WORKERS}", "--capacity", str(CAPACITY), "--tau", "1.0", "--bins", str(BINS), "--master", "local[1]",
    "--gamma", "0.3", "--tolerance", "0.01", "--tasks", "1",
]  # fmt: skip

def count(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + one
    return total, [(key, total)]

def records(epoch: int, drifted: bool) -> list[tuple[int, int]]:
    keys = [*range(BINS)] if not drifted else [*range(BINS // 2)]  # of which half fall silent
    return [(key, 1) for key in keys for _ in range(int(CAPACITY * DAY[epoch % len(DAY)] * 0.9) // len(keys))]

class Steering:
    """What worker 0 does besides: logs, decides, has tables made, and says so."""

    def __init__(self, controller: megaphone.Controller, live: LiveTables, log: LoadLog) -> None:
        self.live, self.controller, self.said = live, controller, list[str]()
        controller.statistics.listeners.append(log.hear)
        self.driver = Driver(controller, Loop(by_intervals(live.plan, 1.0, capacity=CAPACITY), patience=1), least=0)
        log._pinned, log._bins_of = lambda: controller.pinned, controller.bins_of

    def step(self, epoch: int) -> None:
        decision = self.driver.step()
        n = len(self.said)
        self.said += [self.live.last] if decision is not None and decision.acts else []
        if epoch >= 2 * len(DAY):
            self.said += filter(None, [self.live.step(self.controller.statistics.records)])
        for l in self.said[n:]: print(epoch, l, flush=True)

    def used(self, version: int) -> bool:
        return f"mtm_aware, from tables {version}" in self.said

async def main(worker: dataflow.Worker, folder: str) -> tuple[dict[int, int], list[str], Counter[int]]:
    found: dict[int, int] = {}  # by key, the last total that came here
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        totals = megaphone.state_machine(configuration, stream, fold=count, bins=BINS, interval=0.0)
        probe = totals.inspect(lambda _, row: found.update([row])).probe()
    if worker.index:
        return found, [], Counter()  # the others only work: their inputs end here
    controller, sent = megaphone.Controller(control, totals), Counter[int]()
    log = LoadLog(Path(folder) / "log", cost="records")
    live = LiveTables(Path(folder) / "tables", lambda out: (log.flush(), spark_maker(log.folder, OPTIONS)(out))[1], limit=0.3)
    steering = Steering(controller, live, log)
    controller.migrate([bin * worker.peers // BINS for bin in range(BINS)], pins={HOT: 1})
    for epoch in epochs(steering):
        batch = records(epoch, drifted=steering.used(1))
        data.send(batch)
        sent.update(key for key, _ in batch)
        steering.step(epoch)
        controller.advance_to(epoch + 1)
        data.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
        await trio.sleep(0.005)
    live.close()
    return found, steering.said, sent

def epochs(steering: Steering) -> Iterator[int]:
    """Until the second tables, which know the new loads, have planned a migration."""
    epoch = 0
    while not steering.used(2):
        yield epoch
        epoch += 1

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        (_, said, sent), *_ = results = dataflow.execute(main, folder, workers=WORKERS)
    answers = Counter[int]()
    for found, _, _ in results:
        answers |= Counter(found)  # the greater of two: the last, wherever its bin was then
    print(*dict.fromkeys(said), sep="\n")
    print("every total is right" if answers == sent else f"wrong: {answers - sent} {sent - answers}")
