# examples/sessions.py: sessions from web logs, whose lines come out of order
from datetime import datetime
from typing import Any
import dataflow
from dataflow import windows

LOG = """\
2026-07-01T12:00:05 ann /
2026-07-01T12:00:02 bob /
2026-07-01T12:00:40 ann /cart
2026-07-01T12:00:31 ann /shoes
2026-07-01T12:09:00 bob /
2026-07-01T12:09:20 bob /shoes
2026-07-01T12:20:00 ann /
"""

Visit = tuple[datetime, str, str]

def parse(line: str) -> Visit:
    when, user, page = line.split()
    return datetime.fromisoformat(when), user, page

async def main(worker: dataflow.Worker) -> list[Any]:
    out: list[Any] = []
    with worker.dataflow(time="s") as scope:
        lines = scope.source(LOG.splitlines() if worker.index == 0 else [])
        visits = lines.map(parse).event_time(lambda visit: visit[0], delay="1m")
        sessions = windows.window(
            visits,
            windows.session("5m"),
            key=lambda visit: visit[1],
            moments=True,
            pages="count",
            first=("first", lambda visit: visit[2]),
            last=("last", lambda visit: visit[2]),
        )
        sessions.inspect(lambda time, row: out.append(row))
    return out

if __name__ == "__main__":
    rows = [row for some in dataflow.execute(main, workers=2) for row in some]
    for row in sorted(rows, key=lambda row: (row["window_start"], row["key"])):
        print(f"{row['window_start']:%H:%M:%S} {row['key']}: {row['pages']} pages, from {row['first']} to {row['last']}")
