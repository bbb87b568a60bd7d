"""Random cases until time is up, `python -m tests.soak --seconds 300`, or so many of each kind, `--cases 10000`. Prints
the seed of whatever fails, and stops."""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
import traceback
from collections import Counter

from tests.comm import fuzz as frames
from tests.comm import hostile
from tests.connectors import cases as connectors
from tests.crashes import driving as crashes
from tests.fuzz import running as random_programs
from tests.kills import connectors as connector_kills
from tests.kills import kills, scaled
from tests.launch import signals
from tests.megaphone import cases as migrations
from tests.members import crashing
from tests.members import running as members
from tests.nexmark import runs as queries
from tests.plans import engine_cases as plans
from tests.programs import cases as programs
from tests.progress import simulation as protocol
from tests.recovery import lives

KINDS = {
    "protocol": protocol.run_case,
    "program": programs.run_case,
    "members": members.run_case,
    "elastic": crashing.run_elastic,
    "random program": random_programs.run_case,
    "migration": migrations.run_case,
    "query": queries.run_case,
    "plans": plans.run_case,
    "connectors": connectors.run_case,
    "frames": frames.run_case,
    "hostile": hostile.run_case,
    "signals": signals.run_case,
    "lives": lives.play,
    "crashes": crashes.run_case,
    "kills": kills.run_case,
    "scaled": scaled.run_case,
    "connector kills": connector_kills.run_soak_case,
}
# Cases per round: one, but many frames.
ROUND = {"protocol": 2, "migration": 2, "plans": 2, "random program": 2, "frames": 500, "hostile": 20, "crashes": 5}
# At most so many, whatever is asked for: a case of kills is five rounds of processes, and takes seconds.
ENOUGH = {"kills": 200, "scaled": 20, "connector kills": 200}


def main() -> int:
    """Rounds of all kinds of cases, each with a fresh seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long to go on (default: 300)")
    parser.add_argument("--cases", type=int, help="so many cases of each kind, however long that takes")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all", help="which cases (default: all)")
    parser.add_argument("--seed", type=int, help="run this one seed of --kind only, to replay a failure")
    options = parser.parse_args()
    kinds = list(KINDS) if options.kind == "all" else [options.kind]
    if options.seed is not None:
        for kind in kinds:
            KINDS[kind](options.seed)
        return 0
    return soak(kinds, options.seconds, options.cases)


def soak(kinds: list[str], seconds: float, cases: int | None = None) -> int:
    """Runs cases until the time is up or, if their number is given, until there were so many of each kind; 1 if one of
    them failed."""
    seeds = itertools.count(random.SystemRandom().randrange(1 << 48))
    deadline, report = time.monotonic() + seconds, time.monotonic() + 30
    done: Counter[str] = Counter()
    wanted = {kind: min(cases or 0, ENOUGH.get(kind, cases or 0)) for kind in kinds}
    while any(done[kind] < wanted[kind] for kind in kinds) if cases is not None else time.monotonic() < deadline:
        for kind in kinds:
            most = ROUND.get(kind, 1)
            count = most if cases is None else min(most, wanted[kind] - done[kind])
            for seed in itertools.islice(seeds, count):
                if not passes(kind, seed):
                    return 1
                done[kind] += 1
        if time.monotonic() > report:
            print(f"so far: {summary(done)}", file=sys.stderr, flush=True)
            report += 30
    print(f"passed: {summary(done)}")
    return 0


def passes(kind: str, seed: int) -> bool:
    """Whether one case passes; says how to replay it if not."""
    try:
        KINDS[kind](seed)
    except Exception:
        traceback.print_exc()
        print(f"{kind} failed with seed {seed}; replay: python -m tests.soak --kind {kind!r} --seed {seed}")
        return False
    return True


def summary(done: Counter[str]) -> str:
    """How many cases of each kind."""
    return ", ".join(f"{count:,} of {kind}" for kind, count in done.items())


if __name__ == "__main__":
    sys.exit(main())
