# examples/trending.py: what is trending: the most frequent tags of the last ten minutes, every five, as a page
import tempfile
from pathlib import Path
from typing import Any
import dataflow
from dataflow import windows

POSTS = [(n * 7, tag) for n, tag in enumerate(["cats", "cats", "rain", "cats", "rain", "goal", "goal", "goal", "goal", "rain"] * 12)]

def page(row: dict[str, Any]) -> str:
    items = "".join(f"<li>{tag}: {number}</li>" for tag, number in row["tags"])
    return f"<html><body><h1>Trending at {row['window_end']} s</h1><ol>{items}</ol></body></html>"

async def main(worker: dataflow.Worker, folder: str) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []

    def show(row: dict[str, Any]) -> None:
        """Replaces the page in one go: whoever looks at it sees the old one or the new one."""
        new = Path(folder) / "new.html"
        new.write_text(page(row))
        new.replace(Path(folder) / "trending.html")
        out.append(row)

    with worker.dataflow(time="s") as scope:
        posts = scope.source(POSTS if worker.index == 0 else []).event_time(lambda post: post[0], delay="1m")
        trending = windows.window(posts, windows.sliding("10m", every="5m"), tags=("frequent", lambda post: post[1], 2))
        trending.inspect(lambda time, row: show(row))
    return out

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for some in dataflow.execute(main, folder, workers=2) for row in some]
        for row in sorted(rows, key=lambda row: row["window_end"]):
            print(row["window_end"], row["tags"])
        print((Path(folder) / "trending.html").read_text())
