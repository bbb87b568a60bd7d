"""`python -m dataflow.page PID`: the page of the run that another process has. `run --page` starts it."""

from __future__ import annotations

import sys

import trio

from dataflow.page.beside import wait_for_end_of, wait_for_run


async def _main(pid: int) -> None:
    from dataflow.page.serving import listen, serve_page

    async with trio.open_nursery() as nursery:

        async def end() -> None:
            await wait_for_end_of(sys.stdin.fileno())
            nursery.cancel_scope.cancel()

        nursery.start_soon(end)
        run = await wait_for_run(pid)
        await serve_page(run, listen(0), _tell, trio.sleep_forever)
        nursery.cancel_scope.cancel()


def _tell(address: str) -> None:
    print(f"dataflow: the page of this run: {address}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        trio.run(_main, int(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
