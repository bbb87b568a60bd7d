# examples/enrichment.py: each order is completed with what a web service knows, 16 questions at a time
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen
import trio
import dataflow

NAMES = {"1": "ann", "2": "bob"}

class Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = NAMES.get(self.path.strip("/"))
        self.send_response(200 if name else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"name": name}).encode())

    def log_message(self, *arguments: object) -> None:
        pass

def fetch(url: str) -> str:
    with urlopen(url, timeout=5) as answer:
        return str(json.load(answer)["name"])

async def main(worker: dataflow.Worker, address: str) -> list[str]:
    out: list[str] = []

    async def enrich(order: tuple[int, int]) -> tuple[str, int]:
        customer, amount = order
        return await trio.to_thread.run_sync(fetch, f"{address}/{customer}"), amount

    with worker.dataflow() as scope:
        orders = scope.source([(1, 20), (2, 35), (7, 3), (1, 15)] if worker.index == 0 else [])
        complete = orders.map_async(enrich, concurrency=16, timeout="10s", retry=1, errors="stream")
        complete.inspect(lambda time, order: out.append(f"{order[0]} ordered {order[1]}"))
        complete.errors.inspect(lambda time, failed: out.append(f"nobody knows customer {failed[0][0]}: {failed[1]}"))
    return out

if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for line in sorted(line for some in dataflow.execute(main, address, workers=2) for line in some):
        print(line)
    server.shutdown()
    server.server_close()
