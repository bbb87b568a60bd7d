"""The open-loop harness: load at a fixed rate, latency from when records were due, and pictures of it.

    async def main(worker):
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.exchange(lambda n: n).probe()
        schedule = harness.LoadSchedule(rate=100_000, duration=10, workers=worker.peers)
        send = lambda epoch, low, high: numbers.send(range(low, high))
        return await harness.drive(worker, schedule, send, probe, inputs=[numbers])

    outcome = harness.Outcome.of(dataflow.execute(main, workers=2), warmup=1)
    print(outcome.summary())

Where things are:

- `schedule`: when each record is due, and whose it is. `startline`: one instant at which all workers start.
- `openloop`: the driver. `pace`: workers in step. `joining`: workers that join. `scaling`: asks for them.
  `recording`: what a worker brings home. `memory`: of this process. `episodes`: migrations.
- `lateness`: latencies of records from when epochs were complete. `histogram`, `timeline`: where they are counted.
- `outcome`: all of a run, merged over workers: tables and the document.
- `machine`, `revision`, `provenance`: what it was measured on; JSON files. `tables`: numbers for people.
- `live`, `recent`: a view in the terminal while it runs. `progress`: a bar for what takes a while.
- `plots`, `report`: pictures, and a page of HTML.
"""

from megaphone.harness.episodes import Episode, Episodes
from megaphone.harness.histogram import Histogram
from megaphone.harness.live import Live, Snapshot
from megaphone.harness.openloop import OpenLoop, drive
from megaphone.harness.outcome import MeasuredMigration, Outcome
from megaphone.harness.provenance import Provenance, write_document
from megaphone.harness.recording import Recording
from megaphone.harness.report import figures_of, write_report
from megaphone.harness.schedule import LoadSchedule
from megaphone.harness.timeline import Timeline

__all__ = [
    "Episode",
    "Episodes",
    "Histogram",
    "Live",
    "LoadSchedule",
    "MeasuredMigration",
    "OpenLoop",
    "Outcome",
    "Provenance",
    "Recording",
    "Snapshot",
    "Timeline",
    "drive",
    "figures_of",
    "write_document",
    "write_report",
]
