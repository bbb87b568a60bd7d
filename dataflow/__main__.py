"""The command line: `python -m dataflow run module:main --workers 2`."""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import signal
import sys
import threading
import traceback
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path

from dataflow.asking.folder import check_run_name
from dataflow.asking.naming import suggest
from dataflow.asking.network import ControlAddress
from dataflow.comm.flow import DEFAULT_LIMIT
from dataflow.commands import (
    explaining,
    get,
    listing,
    metrics,
    migrate,
    on_spark,
    page,
    profile,
    save,
    scaling,
    snapshots,
    status,
    stop,
    top,
    tracing,
)
from dataflow.errors import DataflowError, Terminated
from dataflow.execute import Main, check_main, execute
from dataflow.launch.cluster import run_cluster
from dataflow.launch.environment import hosts_of_environment, names_manager
from dataflow.launch.guests import Guest, free_port, run_guest
from dataflow.launch.health import parse_health
from dataflow.launch.hosts import (
    Cluster,
    ClusterError,
    Tls,
    is_loopback,
    parse_address,
    parse_hosts,
    read_secret,
    read_tls,
    readable,
)
from dataflow.launch.report import RemoteTraceback
from dataflow.launch.supervisor import Settings
from dataflow.recovery.policy import Recovery
from dataflow.run.defaults import WARN_AFTER
from dataflow.run.logs import FORMATS, LEVELS, begin_logging

EPILOG = """\
one host:
  python -m dataflow run examples.hello:main --workers 2
  python -m dataflow run mymodule:main --workers 4 one two      main(worker, "one", "two") on each

after a crash it goes on from the last snapshot:
  python -m dataflow run mymodule:main --workers 4 --recovery state/ --every 5

several hosts: the same command on each, with its own process number
  (umask 077; python -m dataflow secret > secret.txt)           once; copy it to every host, readable by you alone
  printf '10.0.0.1:9000\\n10.0.0.2:9000\\n' > hosts.txt           one line per host
  python -m dataflow run mymodule:main --workers 2 --hosts hosts.txt --process 0 --secret secret.txt --listen 10.0.0.1
A host listens at the port in the file, and its workers at the ports after it; without --listen on loopback only.

on a Spark cluster, one worker for each slot:
  python -m dataflow run mymodule:main --workers 4 --on spark --master spark://10.0.0.1:7077

exit status: 0 when all workers are done, 1 when one failed (the message names it), 2 for a wrong command, 130 for
Ctrl-C, 143 for SIGTERM
"""


class UsageError(Exception):
    """Something on the command line that cannot be right."""


def main(argv: list[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    options = _parse(sys.argv[1:] if argv is None else argv)
    try:
        return int(options.command(options))
    except (UsageError, ClusterError) as error:
        print(f"dataflow: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if threading.current_thread() is threading.main_thread():  # who is impatient does not change the exit status
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("dataflow: interrupted", file=sys.stderr)
        return 130
    except Terminated as error:
        print(f"dataflow: {error}", file=sys.stderr)
        return 143


def _parse(argv: list[str]) -> argparse.Namespace:
    """The options. argparse itself would give main only those arguments that come before the first option."""
    parser = _parser()
    before, dashes, after = argv, [], []
    if "--" in argv:
        at = argv.index("--")
        before, dashes, after = argv[:at], ["--"], argv[at + 1 :]
    options, rest = parser.parse_known_args(before)
    if any(argument.startswith("-") for argument in rest) or (rest + dashes and not hasattr(options, "arguments")):
        unknown = [argument for argument in rest if argument.startswith("-")] or [*rest, *dashes, *after]
        hint = "; what is meant for the program goes after --" if hasattr(options, "arguments") else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if hasattr(options, "arguments"):
        options.arguments += [*rest, *after]
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dataflow", description="Runs dataflow programs.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a program on several workers, here or on several hosts",
        description="Runs `await main(worker, *arguments)` on every worker.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.set_defaults(command=_run)
    run.add_argument("program", metavar="MODULE:MAIN", help="an asynchronous function in an importable module")
    run.add_argument("arguments", nargs="*", help="passed on to main, as strings (after -- if they start with -)")
    run.add_argument("--name", metavar="NAME", help="by which it is found from another shell (default: MODULE)")
    run.add_argument("--control", metavar="HOST:PORT", help="be asked and steered there, too, by those with --secret")
    run.add_argument("--workers", type=int, default=1, metavar="N", help="workers on each host (default: 1)")
    run.add_argument("--hosts", metavar="FILE", help="one host:port per line; or slurm, or kubernetes:SERVICE:REPLICAS")
    run.add_argument("--join", metavar="HOST:PORT", help="join a run that listens there (its first host)")
    run.add_argument("--process", type=int, metavar="I", help="which line of the file this host is, from 0")
    run.add_argument("--secret", type=Path, metavar="FILE", help="what all hosts know and nobody else")
    run.add_argument("--listen", metavar="ADDRESS", help="where to listen (default: loopback, 127.0.0.1)")
    run.add_argument("--cert", type=Path, metavar="FILE", help="this host's certificate, for TLS between hosts")
    run.add_argument("--key", type=Path, metavar="FILE", help="its private key")
    run.add_argument("--ca", type=Path, metavar="FILE", help="the authority that signed all hosts' certificates")
    run.add_argument(
        "--wait", type=float, default=30.0, metavar="SECONDS", help="for other hosts to start (default: 30)"
    )
    run.add_argument("--health", metavar="ADDRESS", help="answer cluster managers there (docs/clusters.md)")
    run.add_argument("--limit", type=int, default=DEFAULT_LIMIT, metavar="BYTES", help="data on its way per worker")
    run.add_argument("--prefix", action="store_true", help="say on each printed line which worker printed it")
    run.add_argument(
        "--warn-after",
        type=float,
        default=WARN_AFTER,
        metavar="SECONDS",
        help="say what is waited for when nothing moves for so long (default: 10; 0: never)",
    )
    run.add_argument("--log-level", choices=LEVELS, metavar="LEVEL", help=f"log on standard error: {', '.join(LEVELS)}")
    run.add_argument("--log-format", choices=FORMATS, default="text", metavar="KIND", help="text (default), or json")
    run.add_argument("--page", action="store_true", help="serve a live page of it on loopback; its address is printed")
    run.add_argument("--debug", action="store_true", help="check timestamps and frontiers as it goes (slow)")
    for command in (
        listing, status, top, page, explaining, profile, tracing, metrics, get, migrate, scaling, save, stop, snapshots
    ):
        command.add_parser(commands)
    _add_recovery(run)
    on_spark.add_options(run)
    secret = commands.add_parser("secret", help="print a new secret, for --secret")
    secret.set_defaults(command=_secret)
    return parser


def _add_recovery(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group(
        "recovery", "Snapshots are kept; after a crash the same command goes on from the last one."
    )
    group.add_argument("--recovery", metavar="WHERE", help="where snapshots are kept: a folder, or s3://bucket/prefix")
    group.add_argument("--every", type=float, metavar="SECONDS", help="between snapshots (default: 10)")
    group.add_argument("--keep", type=int, metavar="N", help="how many snapshots are kept (default: 3)")
    group.add_argument("--restarts", type=int, metavar="N", help="how often a failure is tried again (default: 5)")
    group.add_argument(
        "--no-replace", dest="replace", action="store_false", default=None,
        help="a worker that dies is not replaced: the others go on without it",
    )  # fmt: skip
    group.add_argument("--window", type=float, metavar="SECONDS", help="in which restarts are counted (default: 600)")
    group.add_argument("--fresh", action="store_true", default=None, help="give up what was saved: start anew")
    group.add_argument("--drop", action="append", metavar="NAME", help="give up the saved state of an operator")
    group.add_argument("--from", dest="start_from", metavar="SAVEPOINT", help="start from a savepoint: [WHERE#]NAME")


def _recovery(options: argparse.Namespace) -> Recovery | None:
    names = ("every", "keep", "restarts", "window", "fresh", "drop", "start_from", "replace")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.recovery is None:
        for name in given:
            option = {"start_from": "from", "replace": "no-replace"}.get(name, name)
            raise UsageError(f"--{option} is for snapshots: say where they are kept, with --recovery")
        return None
    try:
        return Recovery(options.recovery, **given)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def _secret(_: argparse.Namespace) -> int:
    print(secrets.token_hex(32))
    return 0


def _run(options: argparse.Namespace) -> int:
    program = _find(options.program)
    _check(options)
    health = parse_health(options.health) if options.health is not None else None
    log = "" if options.log_level is None else f"{options.log_level} {options.log_format}"
    warn_after = options.warn_after or None
    settings = Settings(options.debug, options.limit, options.prefix, warn_after=warn_after, health=health, log=log)
    recovery = _recovery(options)
    guest = _guest(options, recovery)
    cluster = _cluster(options) if guest is None else None
    control = _control(options)
    on_spark.check_options(options)
    try:
        with ExitStack() as stack:
            if options.page:
                from dataflow.page.beside import page_beside

                stack.enter_context(page_beside())
            _start(program, options, settings, recovery, guest or cluster, control)
    except ClusterError:
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python would complain once more when it flushes at its end
        return 1
    except Exception as error:
        _show(error)
        return 1
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuses what cannot be right, before anything is started."""
    if options.workers < 1 or options.limit < 1:
        raise UsageError("--workers and --limit must be at least 1")
    if not options.warn_after >= 0:
        raise UsageError("--warn-after must not be negative")
    try:
        if options.name is not None:
            check_run_name(options.name)
        if options.page:
            from dataflow.page.beside import require_extra

            require_extra()
    except ValueError as error:
        raise UsageError(str(error)) from None


def _start(
    program: Main,
    options: argparse.Namespace,
    settings: Settings,
    recovery: Recovery | None,
    others: Guest | Cluster | None,
    control: ControlAddress | None,
) -> None:
    name = options.name if options.name is not None else suggest(options.program.partition(":")[0])
    if options.on == "spark":
        begin_logging(settings.log)
        on_spark.run(program, options, settings, recovery)
    elif isinstance(others, Guest):
        begin_logging(settings.log)
        run_guest(program, tuple(options.arguments), others, settings)
    elif others is not None:
        begin_logging(settings.log)
        run_cluster(program, tuple(options.arguments), others, settings, recovery, name, control)
    else:
        execute(
            program,
            *options.arguments,
            workers=options.workers,
            debug=options.debug,
            limit=options.limit,
            prefix=options.prefix,
            warn_after=settings.warn_after,
            recovery=recovery,
            name=name,
            log=settings.log,
            control=control,
        )


def _find(name: str) -> Main:
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        raise UsageError(f"name the program as module:main, not {name!r}")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise
        raise UsageError(f"there is no module {module_name!r} here: run this where it can be imported") from None
    found: object = module
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(f"there is no {part!r} in {module_name}")
        found = getattr(found, part)
    program: Main = attrgetter(path)(module)
    try:
        check_main(program, 1)
    except TypeError as error:
        raise UsageError(str(error)) from None
    return program


def _guest(options: argparse.Namespace, recovery: Recovery | None) -> Guest | None:
    if options.join is None:
        return None
    for name in ("hosts", "process", "on", "control"):
        if getattr(options, name) is not None:
            raise UsageError(f"--join joins a run that others have started: leave out --{name}")
    if options.secret is None:
        raise UsageError("--join needs --secret: that of the run")
    name, port = parse_address(options.join, "--join")
    listen, colon, own = (options.listen or "127.0.0.1").rpartition(":")
    if not colon or not own.isdecimal():
        listen, own = options.listen or "127.0.0.1", ""
    if is_loopback(listen) and not is_loopback(name):
        raise UsageError(
            f"the run is at {name}, and its workers connect to this host: say --listen ADDRESS, one that they can reach"
        )
    first = int(own) if own else free_port(listen, options.workers)
    secret, tls = read_secret(options.secret), _tls(options)
    return Guest((name, port), listen, first, options.workers, secret, tls, options.wait, recovery)


def _cluster(options: argparse.Namespace) -> Cluster | None:
    if options.hosts is None:
        of_control = () if options.control is None else ("secret", "cert", "key", "ca")
        for name in ("process", "secret", "listen", "cert", "key", "ca", "health"):
            if getattr(options, name) is not None and name not in of_control:
                raise UsageError(f"--{name} is for several hosts: give --hosts as well")
        return None
    manager = names_manager(options.hosts)
    if (options.process is None and not manager) or options.secret is None:
        raise UsageError("several hosts need --process, and --secret (make one with `python -m dataflow secret`)")
    tls = _tls(options)
    if manager:
        hosts, process = hosts_of_environment(options.hosts, os.environ)
        process = process if options.process is None else options.process
    else:
        hosts = parse_hosts(readable(Path(options.hosts)).read_bytes().decode("utf-8", "backslashreplace"))
        process = options.process
    mine = hosts[process][0] if 0 <= process < len(hosts) else "127.0.0.1"
    return Cluster(
        hosts,
        process,
        options.workers,
        read_secret(options.secret),
        options.listen or (mine if is_loopback(mine) else "127.0.0.1"),
        tls,
        options.wait,
    )


def _control(options: argparse.Namespace) -> ControlAddress | None:
    if options.control is None:
        return None
    if options.secret is None:
        raise UsageError("--control lets in whoever knows a secret: give --secret FILE (python -m dataflow secret)")
    return ControlAddress(parse_address(options.control, "--control"), read_secret(options.secret), _tls(options))


def _tls(options: argparse.Namespace) -> Tls | None:
    return read_tls(options.cert, options.key, options.ca)


def _show(error: Exception) -> None:
    """One clear message: for the engine's own errors a line, for a program's exceptions the worker's traceback."""
    cause = error.__cause__
    if isinstance(cause, RemoteTraceback):
        print(cause.text.rstrip(), file=sys.stderr)
    elif not isinstance(error, DataflowError):
        traceback.print_exception(error)
    if isinstance(error, DataflowError) or isinstance(cause, RemoteTraceback):
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", []))
        kind = "" if isinstance(error, DataflowError) else f"{type(error).__name__}: "
        print(f"dataflow: {kind}{error}{notes}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
