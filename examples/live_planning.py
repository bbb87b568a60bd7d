# examples/live_planning.py: statistics to Parquet logs, logs to tables on Spark, tables to migrations, while records come
import tempfile
from collections import Counter
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
]  # fmt: skip

def count(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + one
    return total, [(key, total)]

def records(epoch: int, drifted: bool) -> list[tuple[int, int]]:
    keys = range(BINS // 2 if drifted else BINS)  # of which half fall silent
    return [(key, 1) for key in keys for _ in range(int(CAPACITY * DAY[epoch % len(DAY)] * 0.9) // len(keys))]

async def main(worker: dataflow.Worker, live: LiveTables, log: LoadLog) -> tuple[dict[int, int], Counter[int], list[str]]:
    found: dict[int, int] = {}  # by key, the last total that came here
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        totals = megaphone.state_machine(configuration, stream, fold=count, bins=BINS, interval=0.0)
        probe = totals.inspect(lambda _, row: found.update([row])).probe()
    sent, said = Counter[int](), list[str]()
    if worker.index:
        return found, sent, said  # the others only work: their inputs end here
    controller = megaphone.Controller(control, totals)
    log.watch(controller)
    driver = Driver(controller, Loop(by_intervals(live.plan, 1.0, capacity=CAPACITY), patience=1), least=0)
    controller.migrate([bin * worker.peers // BINS for bin in range(BINS)], pins={HOT: 1})
    epoch = 0
    while "mtm_aware, from tables 2" not in said:  # the second tables know the loads after the drift
        batch = records(epoch, drifted="mtm_aware, from tables 1" in said)
        data.send(batch)
        sent.update(key for key, _ in batch)
        decision = driver.step()
        said += [live.last] if decision is not None and decision.acts else []
        if epoch >= 2 * len(DAY):  # a log of two days
            said += filter(None, [live.step(controller.statistics.records)])
        controller.advance_to(epoch + 1)
        data.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
        await trio.sleep(0.05 if live.making else 0.0)
        epoch += 1
        assert epoch < 100_000, said
    return found, sent, said

def check(results: list[tuple[dict[int, int], Counter[int], list[str]]]) -> list[str]:
    """What was said, each line once, if every total is right."""
    answers = Counter[int]()
    for found, _, _ in results:
        answers |= Counter(found)  # the greater of two: the last, wherever its bin was then
    assert answers == results[0][1], answers
    return list(dict.fromkeys(results[0][2]))

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        log = LoadLog(Path(folder) / "log", cost="records", every=10_000)
        live = LiveTables(Path(folder) / "tables", spark_maker(log, OPTIONS), limit=0.3)
        print(*check(dataflow.execute(main, live, log, workers=WORKERS, in_process=True)), sep="\n")
        live.close()
