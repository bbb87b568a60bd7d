"""`python -m dataflow page RUN`: the live page of a run, on loopback."""

from __future__ import annotations

import argparse

from dataflow.commands.asking import Subparsers, add_command, port_number

_EXAMPLES = """\
  python -m dataflow page app                  prints the address to open, with a token in it
  python -m dataflow page app --port 9465      at that port, for `ssh -L 9465:127.0.0.1:9465 host`
  python -m dataflow page 10.0.0.1:9400 --secret secret.txt      a run on another host (its --control)
  python -m dataflow run mymodule:main --page  begins and ends with the run

It shows the graph, frontiers, latency, bins, timelines and what loops decide, and moves bins. Only whoever has the
address with its token can use it. It goes on when the run ends, and finds the next one of that name.
"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "page",
        _command,
        "a live page of a run, in a browser",
        "Serves a live page of a run on loopback, until it is interrupted (the extra `page`).",
        _EXAMPLES,
    )
    parser.add_argument("--port", type=port_number, default=0, metavar="N", help="where to listen (default: any free)")


def _command(options: argparse.Namespace) -> int:
    from dataflow.page.beside import require_extra

    require_extra()
    import trio

    from dataflow.page.serving import listen, serve_page

    trio.run(serve_page, options.run, listen(options.port), _tell, trio.sleep_forever)
    return 0


def _tell(address: str) -> None:
    print(address, flush=True)
