# examples/recovery.py: a word count of text files into SQLite that survives kill -9; here it is started twice
import sqlite3
import tempfile
from pathlib import Path
import dataflow
import megaphone
from dataflow import sinks, sources

def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]

async def main(worker: dataflow.Worker, folder: str, database: str) -> None:
    with worker.dataflow() as scope:
        lines = scope.source(sources.lines(folder, batch=2))            # each file is a partition
        words = lines.flat_map(lambda line: [(word, 1) for word in line.split()])
        totals = megaphone.state_machine(scope.control(), words, fold=count, bins=256, name="totals")
        totals.sink(sinks.sqlite(database, "totals", columns=("word", "total"), key=("word",)))

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        logs, database = Path(place, "logs"), f"{place}/out.db"
        logs.mkdir()
        for workers, text in ((2, "the quick fox\nthe lazy dog\n"), (3, "the end\n")):
            with (logs / "a.txt").open("a") as file:
                file.write(text)                                        # the second run goes on behind what the first has read
            dataflow.execute(main, str(logs), database, workers=workers, recovery=f"{place}/state")
            print(sqlite3.connect(database).execute("select word, total from totals order by total desc, word").fetchall())
