# examples/trending.py: what is trending: the most frequent tags of the last ten minutes, every five, on a page that follows them
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import urlopen
import dataflow
from dataflow import windows

POSTS = [(n * 7, tag) for n, tag in enumerate(["cats", "cats", "rain", "cats", "rain", "goal", "goal", "goal", "goal", "rain"] * 12)]
PAGE = """<html><body><h1>Trending</h1><ol id="tags"></ol><script>
new EventSource("/events").onmessage = event => {
    const row = JSON.parse(event.data)
    document.getElementById("tags").innerHTML = row.tags.map(([tag, number]) => `<li>${tag}: ${number}</li>`).join("")
}
</script></body></html>"""

class Board:
    """What the page shows. Whoever looks at it is told of each change: server-sent events."""
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.over = False
        self.changed = threading.Condition()

    def show(self, row: dict[str, Any] | None) -> None:
        with self.changed:
            self.rows += [row] if row else []
            self.over = row is None
            self.changed.notify_all()

    def serve(self) -> ThreadingHTTPServer:
        board = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if self.path == "/events" else "text/html")
                self.end_headers()
                if self.path != "/events":
                    self.wfile.write(PAGE.encode())
                    return
                told = 0
                while not (board.over and told == len(board.rows)):
                    with board.changed:
                        board.changed.wait(0 if board.over or told < len(board.rows) else None)
                    for row in board.rows[told:]:
                        self.wfile.write(f"id: {told}\ndata: {json.dumps(row)}\n\n".encode())
                        told += 1

            def log_message(self, *arguments: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

async def main(worker: dataflow.Worker, board: Board) -> None:
    with worker.dataflow(time="s") as scope:
        posts = scope.source(POSTS if worker.index == 0 else [], every="1ms").event_time(lambda post: post[0], delay="1m")
        trending = windows.window(posts, windows.sliding("10m", every="5m"), tags=("frequent", lambda post: post[1], 2))
        probe = trending.inspect(lambda time, row: board.show(row)).probe()
    await probe.wait_done()
    if worker.index == 0:
        board.show(None)

if __name__ == "__main__":
    board = Board()
    server = board.serve()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    print(urlopen(address).read().decode().splitlines()[0])  # open it in a browser: it follows what comes
    run = threading.Thread(target=dataflow.execute, args=(main, board), kwargs={"workers": 2, "in_process": True})
    run.start()
    for line in urlopen(f"{address}/events"):                # what a browser is told, while posts come
        if line.startswith(b"data: "):
            row = json.loads(line.removeprefix(b"data: "))
            print(row["window_end"], row["tags"])
    run.join()
    server.shutdown()
    server.server_close()
