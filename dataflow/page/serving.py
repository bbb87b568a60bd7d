"""Serves the page: hypercorn under trio, on loopback."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable

import trio
from hypercorn.config import Config
from hypercorn.trio import serve

from dataflow.page.app import make_app
from dataflow.page.feed import Feed
from dataflow.page.guard import make_token

ADDRESS = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """A socket on loopback; any free port if it is 0. ValueError if it cannot be had."""
    listener = socket.socket(socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ValueError(f"cannot listen at {ADDRESS}:{port}: {error}; --port 0 takes any that is free") from None
    return listener


async def serve_page(
    run: str, listener: socket.socket, tell: Callable[[str], None], until: Callable[[], Awaitable[None]]
) -> None:
    """Serves the page of a run until `until` returns; `tell` is told its address."""
    token = make_token()
    feed = Feed(run)
    config = Config()
    port = listener.getsockname()[1]
    config.bind = [f"fd://{listener.detach()}"]  # hypercorn closes it
    config.accesslog = None
    config.errorlog = logging.getLogger("dataflow.page")
    config.graceful_timeout = 0.2  # whoever watches would do so for ever
    config.shutdown_timeout = 1.0
    config.include_server_header = False
    app = make_app(feed, token)
    over = trio.Event()

    async def end() -> None:
        await until()
        over.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.run_for_ever)
        nursery.start_soon(end)
        tell(f"http://{ADDRESS}:{port}/#token={token}")
        await serve(app, config, shutdown_trigger=over.wait)  # type: ignore[arg-type]
        nursery.cancel_scope.cancel()
