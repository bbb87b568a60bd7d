# examples/socket_words.py: a word count of the lines that come from a socket
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
import trio
import dataflow

TEXT = b"to be or not to be\nthat is the question\nto sleep\n"

async def lines(port: int) -> AsyncIterator[str]:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        rest = b""
        async for data in stream:
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line.decode()

async def main(worker: dataflow.Worker) -> Counter[str]:
    totals: Counter[str] = Counter()

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.send_all(TEXT)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        with worker.dataflow() as scope:
            words = scope.source(lines(port), name="socket").flat_map(str.split)
            counts = words.count(lambda word: word)
            probe = counts.inspect(lambda time, pair: totals.update({pair[0]: pair[1]})).probe()
        await probe.wait_done()
        nursery.cancel_scope.cancel()
    return totals

if __name__ == "__main__":
    for totals in dataflow.execute(main):
        for word, number in sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))[:3]:
            print(word, number)
