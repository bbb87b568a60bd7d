"""`python -m dataflow metrics RUN --port 9464`: metrics for Prometheus and a health check, from one address for all
workers.

A process of its own, which asks the run whenever it is asked itself: nothing in the run waits for whoever scrapes, and
it goes on when the run is started again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from threading import Lock
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from dataflow.asking.client import NoSuchRun
from dataflow.asking.messages import Refused
from dataflow.commands.asking import Status, Subparsers, add_command, port_number
from dataflow.commands.families import as_prometheus, families

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_EXAMPLES = """\
  python -m dataflow metrics app                       http://127.0.0.1:9464/metrics and /health
  python -m dataflow metrics app --port 0              any free port; the first line says which

/metrics has all workers of the run; docs/operating.md lists what there is. /health is 200 while all workers answer, and
503 with the reason otherwise. It goes on when the run ends, and finds the next one of that name.
"""

StartResponse = Callable[[str, list[tuple[str, str]]], object]


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "metrics",
        _command,
        "serve metrics for Prometheus, and a health check",
        "Serves metrics of a run for Prometheus, and a health check, until it is interrupted (the extra `metrics`).",
        _EXAMPLES,
    )
    parser.add_argument("--port", type=port_number, default=9464, metavar="N", help="where to listen (default: 9464)")
    parser.add_argument("--listen", default="127.0.0.1", metavar="ADDRESS", help="(default: loopback, 127.0.0.1)")


class Collector:
    """Asks the run whenever somebody scrapes."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._name = str(run)
        self._before: Status | None = None
        self._kept = Lock()

    def collect(self) -> Iterator[Metric]:
        """What there is now; only that there is nothing, if the run does not answer."""
        status = self.status()[0]
        if status is not None:  # it knows its name, where it was asked by an address
            self._name = str(status.facts["name"])
        with self._kept:
            before, self._before = self._before, status
        yield from as_prometheus(families(self._name, status, before))

    def status(self) -> tuple[Status | None, str]:
        """What the run says; or None, and why."""
        try:
            return Status(self._run), ""
        except (NoSuchRun, Refused, ValueError) as error:
            return None, str(error)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are not news."""


def make_exporter(run: str, listen: str, port: int) -> WSGIServer:
    """A server that is bound, and serves when told to."""
    try:
        from prometheus_client import CollectorRegistry, make_wsgi_app
    except ImportError:
        raise ValueError("metrics need prometheus-client: pip install 'megaphone-dataflow[metrics]'") from None
    collector = Collector(run)
    registry = CollectorRegistry()
    registry.register(collector)
    metrics = make_wsgi_app(registry, disable_compression=True)

    def app(environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO")
        if path == "/health":
            return _health(collector, start)
        if path == "/metrics":
            served: Iterable[bytes] = metrics(environ, start)
            return served
        start("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"there are /metrics and /health\n"]

    try:
        return make_server(listen, port, app, server_class=_Server, handler_class=_Quiet)
    except (OSError, OverflowError) as error:
        raise ValueError(f"cannot listen at {listen}:{port}: {error}") from None


def _health(collector: Collector, start: StartResponse) -> Iterable[bytes]:
    status, why = collector.status()
    if status is not None:
        why = "; ".join(f"{worker}: {reason}" for worker, reason in status.silent.items())
    start("503 Service Unavailable" if why else "200 OK", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{why or 'all workers answer'}\n".encode()]


def _command(options: argparse.Namespace) -> int:
    with make_exporter(options.run, options.listen, options.port) as server:
        print(f"http://{options.listen}:{server.server_port}/metrics and /health", flush=True)
        server.serve_forever()
    return 0
