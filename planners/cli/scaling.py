"""``python -m planners scale``: what the autoscaler would do about a curve of rates, beside a rule of thresholds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from planners.errors import BadRequest

if TYPE_CHECKING:
    from planners.scaling.simulation import Story

HEADING = (
    f"{'curve':<9} {'policy':<10} {'seconds':>8} {'under':>6} {'over':>6} {'spent':>6} {'changes':>8} {'backlog':>8}"
)
NAMES = ("step", "ramp", "diurnal", "spikes")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    parser = commands.add_parser("scale", help="what the autoscaler would do about a curve of rates")
    parser.add_argument("--curve", choices=[*NAMES, "all"], default="all", help="a shape of a curve (all)")
    parser.add_argument("--rates", type=Path, metavar="FILE", help="a recording: records per second, a line per second")
    parser.add_argument("--utilisation", type=float, default=0.8, help="how busy workers should be (0.8)")
    parser.add_argument("--maximum", type=int, default=64, help="how many workers there may be (64)")
    parser.add_argument("--catch-up", type=float, metavar="SECONDS", help="work off a backlog within so many seconds")
    parser.add_argument("--decisions", action="store_true", help="print each decision that changes something, and why")
    parser.add_argument(
        "--picture", metavar="FILE", help="also draw rates, workers and the oracle's (.png, .svg, .pdf)"
    )


def scale(options: argparse.Namespace) -> int:
    """Prints a line for each curve and policy."""
    from planners.scaling.autoscaler import Autoscaler, ScaleSettings
    from planners.scaling.curves import CURVES, read_curve
    from planners.scaling.simulation import ModelDataflow, Outlook, Threshold, simulate_scaling

    if options.rates is not None:
        curves = {options.rates.stem: read_curve(options.rates)}
    else:
        curves = {name: CURVES[name]() for name in (NAMES if options.curve == "all" else [options.curve])}
    settings = ScaleSettings(options.utilisation, maximum=options.maximum, catch_up=options.catch_up)
    outlook = Outlook(workers=min(2, options.maximum), maximum=options.maximum, utilisation=options.utilisation)
    stories = {}
    print(HEADING)
    for name, curve in curves.items():
        for policy, decide in (("ds2", Autoscaler(settings).decide), ("threshold", Threshold().decide)):
            story = simulate_scaling(curve, decide, ModelDataflow(), outlook)
            print(_line(name, policy, story))
            if policy == "ds2":
                stories[name] = story
                for each in story.changes if options.decisions else ():
                    print(f"  {each}")
    if options.picture is not None:
        from planners.cli.picture import draw_stories

        if not stories:
            raise BadRequest("there is nothing to draw")
        draw_stories(options.picture, stories)
    return 0


def _line(name: str, policy: str, story: Story) -> str:
    numbers = f"{len(story.offered):>8} {story.under:>6} {story.over:>6} {story.spent:>6.2f} {len(story.changes):>8}"
    return f"{name:<9} {policy:<10} {numbers} {story.worst:>7.1f}s"
