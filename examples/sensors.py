# examples/sensors.py: IoT with late data: means by minute, results so far every 20 s, and what came too late
from typing import Any
import dataflow
from dataflow import windows

Reading = tuple[int, str, float]  # second, sensor, temperature

READINGS: list[Reading] = [
    (5, "oven", 180.0), (12, "door", 20.0), (30, "oven", 190.0), (22, "oven", 185.0),
    (70, "oven", 200.0), (66, "door", 21.0), (100, "oven", 210.0), (31, "door", 19.0),  # the last one is late
    (130, "door", 22.0),
]

async def main(worker: dataflow.Worker) -> tuple[list[dict[str, Any]], list[Reading]]:
    out: list[dict[str, Any]] = []
    late: list[Reading] = []
    with worker.dataflow(time="s") as scope:
        readings = scope.source(READINGS if worker.index == 0 else [])
        timed = readings.event_time(lambda reading: reading[0], delay="20s", late="stream")
        timed.late.inspect(lambda time, reading: late.append(reading))
        means = windows.window(
            timed, windows.tumbling("1m"), key=lambda reading: reading[1], early="20s", mean=("mean", lambda reading: reading[2])
        )
        means.inspect(lambda time, row: out.append({"at": time, **row}))
    return out, late

if __name__ == "__main__":
    found = dataflow.execute(main, workers=2)
    for row in sorted((row for rows, _ in found for row in rows), key=lambda row: (row["at"], row["key"])):
        print(row["at"], row["key"], f"{row['mean']:.1f}", "final" if row["final"] else "so far")
    for _, late in found:
        for reading in late:
            print("too late:", *reading)
