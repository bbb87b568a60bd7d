"""`python -m dataflow run --on spark`: the same program, with its workers on the executors of a Spark cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dataflow.launch.hosts import ClusterError

if TYPE_CHECKING:
    from dataflow.execute import Main
    from dataflow.launch.process import Settings
    from dataflow.recovery.policy import Recovery

_OF_SPARK = ("master", "conf", "package")
_OF_HOSTS = ("hosts", "name", "control")


def add_options(run: argparse.ArgumentParser) -> None:
    """The options of `run` that are about Spark."""
    group = run.add_argument_group("on Spark", "Workers are guests on the executors, one for each slot.")
    group.add_argument("--on", choices=["spark"], help="run the workers on a cluster of that kind")
    group.add_argument("--master", metavar="URL", help="spark://HOST:PORT, yarn, k8s://..., local-cluster[2,1,1024]")
    group.add_argument("--conf", action="append", metavar="KEY=VALUE", help="a setting of the Spark session")
    group.add_argument("--package", action="append", metavar="NAME", help="one more package that goes to the executors")


def check_options(options: argparse.Namespace) -> None:
    """Refuses options that do not go together."""
    for name in _OF_SPARK if options.on is None else _OF_HOSTS:
        if getattr(options, name) is not None:
            what = "for Spark: give --on spark as well" if options.on is None else "not for --on spark"
            raise ClusterError(f"--{name} is {what}")
    for setting in options.conf or ():
        if not all(setting.partition("=")):
            raise ClusterError(f"--conf takes KEY=VALUE, such as spark.cores.max=4, and not {setting!r}")


def run(program: Main, options: argparse.Namespace, settings: Settings, recovery: Recovery | None) -> None:
    """Runs a program with a session of its own, which ends with it."""
    from dataflow.spark.driver import execute
    from dataflow.spark.rooms import require_pyspark, start_session

    require_pyspark()
    session = start_session(options.master, dict(each.split("=", 1) for each in options.conf or ()))
    try:
        execute(
            program,
            *options.arguments,
            workers=options.workers,
            session=session,
            packages=options.package or (),
            debug=settings.debug,
            limit=settings.limit,
            prefix=settings.prefix,
            warn_after=settings.warn_after,
            recovery=recovery,
            wait=options.wait,
        )
    finally:
        session.stop()
