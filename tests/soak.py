"""Random cases until the time is up: `python -m tests.soak --seconds 300`. Prints the seed of whatever fails, and stops."""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
import traceback

from tests.programs import cases as programs
from tests.progress import simulation as protocol

KINDS = {"protocol": protocol.run_case, "program": programs.run_case}


def main() -> int:
    """Alternates between the kinds of cases, each with a fresh seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long to go on (default: 300)")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all", help="which cases (default: all)")
    parser.add_argument("--seed", type=int, help="run this one seed of --kind only, to replay a failure")
    options = parser.parse_args()
    kinds = list(KINDS) if options.kind == "all" else [options.kind]
    if options.seed is not None:
        for kind in kinds:
            KINDS[kind](options.seed)
        return 0
    return soak(kinds, options.seconds)


def soak(kinds: list[str], seconds: float) -> int:
    """Runs cases until the time is up; 1 if one of them failed."""
    start = random.SystemRandom().randrange(1 << 48)
    deadline = time.monotonic() + seconds
    report = time.monotonic() + 30
    done = 0
    for seed in itertools.count(start):
        kind = kinds[seed % len(kinds)]
        try:
            KINDS[kind](seed)
        except Exception:
            traceback.print_exc()
            print(f"{kind} failed with seed {seed}; replay: python -m tests.soak --kind {kind} --seed {seed}")
            return 1
        done += 1
        if time.monotonic() > report:
            print(f"{done} cases so far", file=sys.stderr, flush=True)
            report += 30
        if time.monotonic() > deadline:
            break
    print(f"{done} cases passed (seeds {start} to {start + done - 1})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
