"""What happens to the run. Each trouble is a function: it does something, undoes it, and says what it did."""

from __future__ import annotations

import errno
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from random import Random

from bench.endure.app import OPERATOR
from bench.endure.living import LongRun, kill
from bench.endure.writing import WordWriter

_STRATEGIES = ("all-at-once", "fluid", "batched:16", "batched:64", "matched")
_JUMPS = (-3600, -60, 60, 3600, 86_400)
_CHUNK = b"\0" * (1 << 20)


@dataclass(frozen=True, slots=True)
class Troubled:
    """What troubles can reach."""

    run: LongRun
    writer: WordWriter
    chance: Random
    rate: float
    burst: float  # how many times the rate
    small_disk: bool


def migrate(world: Troubled) -> str:
    """Bins move, in one of several ways."""
    workers = sorted(reading.worker for reading in world.run.await_workers())
    to = world.chance.choice(("even", "bytes", f"worker:{world.chance.choice(workers)}"))
    strategy = world.chance.choice(_STRATEGIES)
    said = world.run.tell("migrate", "--operator", OPERATOR, "--to", to, "--strategy", strategy)
    return f"to {to} by {strategy}: {said}"


def scale(world: Troubled) -> str:
    """Workers join or leave."""
    wanted = world.chance.choice((1, 2, 3, 4))
    return f"to {wanted}: {world.run.tell('scale', str(wanted))}"


def save(world: Troubled) -> str:
    """A savepoint."""
    return world.run.tell("save", f"at-{int(time.time())}")


def kill_worker(world: Troubled) -> str:
    """kill -9 to one worker."""
    victim = world.chance.choice(world.run.await_workers())
    world.run.kill_worker(victim.pid)
    alone = ", the only one" if victim.pid == world.run.supervisor else ""
    return f"worker {victim.worker}{alone}"


def kill_run(world: Troubled) -> str:
    """kill -9 to all of it; the same command again, with another number of workers."""
    world.run.kill_all()
    world.run.workers = world.chance.choice((1, 2, 2, 3))
    world.run.mend()
    world.run.await_workers()
    return f"started again with {world.run.workers} workers"


def slow_worker(world: Troubled) -> str:
    """One worker stands still for some seconds: a slow consumer, for those who send to it."""
    victim = world.chance.choice(world.run.await_workers())
    seconds = world.chance.uniform(1.0, 6.0)
    kill(victim.pid, signal.SIGSTOP)
    time.sleep(seconds)
    kill(victim.pid, signal.SIGCONT)
    return f"worker {victim.worker} for {seconds:.1f} s"


def overload(world: Troubled) -> str:
    """Many times as many words as usual, for a while."""
    world.writer.rate = world.rate * world.burst
    time.sleep(20.0)
    world.writer.rate = world.rate
    return f"{world.burst:g} times the usual rate for 20 s"


def locked_table(world: Troubled) -> str:
    """Somebody else has locked the database for some seconds: a slow consumer, for the sink."""
    seconds = world.chance.uniform(1.0, 8.0)
    with closing(sqlite3.connect(world.run.places.database, timeout=30.0, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        time.sleep(seconds)
        connection.execute("rollback")
    return f"for {seconds:.1f} s"


def full_disk(world: Troubled) -> str:
    """No room for snapshots, for a while."""
    if not world.small_disk:
        return "not tried: it takes root to have a small disk of its own"
    path = world.run.places.state / "filler"
    try:
        with path.open("wb", buffering=0) as file:
            while True:
                file.write(_CHUNK)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    time.sleep(10.0)
    path.unlink()
    return "for 10 s"


def clock_jump(world: Troubled) -> str:
    """The wall clock jumps, forwards or backwards, and back again."""
    if not world.run.clock_can_jump:
        return "not tried: it takes Linux and a compiler for C"
    seconds = world.chance.choice(_JUMPS)
    world.run.set_clock(seconds)
    time.sleep(8.0)
    world.run.set_clock(0)
    return f"by {seconds:+d} s and back"


TROUBLES: Mapping[str, tuple[int, Callable[[Troubled], str]]] = {
    "migration": (5, migrate),
    "scaling": (3, scale),
    "savepoint": (1, save),
    "kill -9 of a worker": (2, kill_worker),
    "kill -9 of the run": (1, kill_run),
    "stopped worker": (2, slow_worker),
    "overload": (1, overload),
    "locked table": (1, locked_table),
    "full disk": (1, full_disk),
    "clock jump": (1, clock_jump),
}
"""By name: how often beside the others, and what."""


class Deck:
    """Draws troubles so that each comes as often as its weight says: a shuffled deck, and then another."""

    def __init__(self, chance: Random) -> None:
        self._chance, self._deck = chance, list[str]()

    def next(self) -> str:
        """The name of the next one."""
        if not self._deck:
            self._deck = [name for name, (weight, _) in TROUBLES.items() for _ in range(weight)]
            self._chance.shuffle(self._deck)
        return self._deck.pop()
