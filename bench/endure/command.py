"""`python -m bench.endure`: hours of a run with its troubles, and a page about it."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from bench.endure.judging import Answer, judge
from bench.endure.living import LongRun, RunFolder
from bench.endure.report import write_report
from bench.endure.troubles import TROUBLES, Deck, Troubled
from bench.endure.watching import Lookout
from bench.endure.writing import WordWriter
from megaphone.harness.provenance import Provenance

_COMPARE_EVERY = 300.0  # seconds
_LOOK_EVERY = 3.0
_SMALL_DISK = 128 << 20


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.endure",
        description="Leaves a run alone with migrations, scaling, kills, a full disk and more; writes a page about it.",
        epilog="exit status: 0 when everything was good, 1 when something was not, 2 for a wrong command",
    )
    parser.add_argument("--hours", type=float, default=1.0, help="for how long (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("endure"), help="the folder for the page (default: endure/)")
    parser.add_argument("--rate", type=float, default=5_000, help="words per second (default: 5,000)")
    parser.add_argument("--burst", type=float, default=20, help="how many times that in overload (default: 20)")
    parser.add_argument("--words", type=int, default=20_000, help="different words (default: 20,000)")
    parser.add_argument("--calm", type=float, default=15.0, help="seconds between troubles, at most (default: 15)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--pause-while", type=Path, metavar="FILE", help="stand still while this file exists: somebody else measures"
    )
    options = parser.parse_args(arguments)
    if options.hours <= 0:
        parser.error("--hours: more than none")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs it; the exit status."""
    options = parse(arguments)
    provenance = Provenance(["python", "-m", "bench.endure", *arguments])
    options.out.mkdir(parents=True, exist_ok=True)
    about = (
        f"{options.hours:g} hours, {options.rate:,.0f} words per second, {options.words:,} words, seed {options.seed}"
    )
    with tempfile.TemporaryDirectory(prefix="endure-") as folder, _small_disk(Path(folder) / "state") as small:
        places = RunFolder(Path(folder))
        writer = WordWriter(places.lines, options.rate, options.words, options.seed)
        run = LongRun(places, f"endure-{os.getpid()}", workers=2)
        watch = Lookout(run, writer)
        world = Troubled(run, writer, Random(options.seed), options.rate, options.burst, small)
        try:
            _live(world, watch, options)
        finally:
            run.end()
            writer.close()
            verdicts = judge(watch)
            write_report(options.out / "report.html", watch, verdicts, provenance, about)
            (options.out / "run.log").write_bytes(places.log.read_bytes())
    return _tell(verdicts, options.out)


def _live(world: Troubled, watch: Lookout, options: argparse.Namespace) -> None:
    world.run.await_workers()
    over = threading.Event()
    looker = threading.Thread(target=_look, args=(watch, over), name="looker")
    looker.start()
    try:
        cycle, compared = Deck(world.chance), watch.now
        while watch.now < options.hours * 3600:
            time.sleep(world.chance.uniform(0.3, 1.0) * options.calm)
            _happen(world, watch, cycle.next())
            if watch.now - compared > _COMPARE_EVERY:
                _say(watch, f"all is shown, and compared: {watch.compare():.1f} s")
                compared = watch.now
            if options.pause_while is not None and options.pause_while.exists():
                _say(watch, f"stood still for {watch.stand_still(options.pause_while.exists):.0f} s")
                compared = watch.now
        _say(watch, f"the last comparison: {watch.compare():.1f} s")
    finally:
        over.set()
        looker.join()


def _happen(world: Troubled, watch: Lookout, name: str) -> None:
    began = watch.now
    try:
        said = TROUBLES[name][1](world)
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        said = str(error)
        watch.faults.append(f"{watch.now:.0f} s: {name}: {said}")
    watch.events.append((began, watch.now, name, said))
    _say(watch, f"{name}: {said}")


def _look(watch: Lookout, over: threading.Event) -> None:
    while not over.wait(_LOOK_EVERY):
        with watch.looking:
            if watch.run.mend():
                watch.faults.append(f"{watch.now:.0f} s: the run ended by itself, with {watch.run.statuses[-1]}")
            watch.look()


def _say(watch: Lookout, text: str) -> None:
    print(f"{watch.now:7,.0f} s  {text}", flush=True)


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """A file system that can be filled, if we may have one: whether we do."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_DISK},mode=700", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _tell(verdicts: Sequence[Answer], out: Path) -> int:
    for each in verdicts:
        print(f"{'good' if each.good else 'NOT GOOD'}: {each.question} {each.answer}")
    print(f"{out / 'report.html'} has it as a page")
    return 0 if all(each.good for each in verdicts) else 1
