"""The command line: ``python -m planners plan | compare | explain | loop | live | order | scale | autoscale``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence

import planners
from planners.cli import autoscaling, living, orders, replay, report, scaling
from planners.cli.files import document, read_request, write_plan
from planners.errors import Infeasible, PlannerError
from planners.intervals.feasibility import is_feasible
from planners.links.schedule import schedule
from planners.model import Assignment, Limits, Plan, Tasks

OK, INFEASIBLE, USAGE = 0, 1, 2

EXAMPLES = """\
examples:
  python -m planners plan now.json --nodes 5 --tau 0.5                       the cheapest balanced plan
  python -m planners plan now.parquet --nodes 5 --tau 0.5 --output next.json   and where to put it
  python -m planners compare now.json --nodes 5 --tau 0.5 --picture all.png  what each planner would do
  python -m planners explain now.json --nodes 4 --tau 0.2                    why not, and which tau would do
  python -m planners loop statistics.parquet --dry-run                       what the closed loop would have done
  python -m planners live app --tables tables                                beside a run: log, tables, migrations
  python -m planners order join.json --dry-run                               the cheapest join order, and when
  python -m planners scale --curve diurnal --picture scale.png               how many workers, and when
  python -m planners autoscale app --maximum 4 --dry-run                     how many a run needs, from its counters

now.json: {"sizes": [5, 6, ...], "loads": [8, 4, ...], "cuts": [0, 4, 7, 10]}, or "map": [0, 0, ...] instead of "cuts".
A Parquet file has the columns size, load and node (and bin), a row for each task. "-" is JSON from standard input.
The exit code is 0, or 1 if no plan is balanced, or 2 if the request makes no sense.
"""

# Looked up when they are asked for: `--help` should not wait for a compiler to be imported.
PLANNERS: dict[str, Callable[[], Callable[..., Plan]]] = {
    "ssm": lambda: planners.ssm,
    "simple-ssm": lambda: planners.simple_ssm,
    "storm": lambda: planners.storm,
    "consistent-hashing": lambda: planners.consistent_hashing,
    "redist": lambda: planners.redist,
}
INTERVAL_PLANNERS = ("ssm", "simple-ssm", "mtm-aware")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "loop":
            return replay.replay(options)
        if options.command == "live":
            return living.live(options)
        if options.command == "order":
            return orders.order(options)
        if options.command == "scale":
            return scaling.scale(options)
        if options.command == "autoscale":
            return autoscaling.autoscale(options)
        current, tasks = read_request(options.request)
        command: Callable[[argparse.Namespace, Assignment, Tasks], int] = options.run
        return command(options, current, tasks)
    except Infeasible as why:
        print(f"python -m planners: {why}", file=sys.stderr)
        return INFEASIBLE
    except PlannerError as error:
        print(f"python -m planners: {error}", file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"python -m planners: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m planners",
        description="Plan migrations: from where tasks are to a balanced assignment of so many nodes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plan = commands.add_parser("plan", help="a plan: what moves, what it costs, how long the links need")
    _add_request(plan, _plan)
    choices = [*PLANNERS, "mtm-aware"]
    plan.add_argument("--planner", choices=choices, default="ssm", help="which planner (ssm: the cheapest plan)")
    plan.add_argument("--tables", metavar="FOLDER", help="projected costs, for mtm-aware")
    plan.add_argument("--output", metavar="FILE", help="also write the plan (.json, .parquet): the next request")
    plan.add_argument("--json", action="store_true", help="print JSON instead of a table")
    compare = commands.add_parser("compare", help="a table, and a picture, of what each planner would do")
    _add_request(compare, _compare)
    compare.add_argument("--tables", metavar="FOLDER", help="projected costs: then mtm-aware is compared too")
    compare.add_argument("--picture", metavar="FILE", help="also draw who would have what (.png, .svg, .pdf)")
    explain = commands.add_parser("explain", help="why a request is infeasible and the smallest tau that is not")
    _add_request(explain, _explain)
    replay.add_command(commands)
    living.add_command(commands)
    orders.add_command(commands)
    scaling.add_command(commands)
    autoscaling.add_command(commands)
    return parser


def _add_request(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace, Assignment, Tasks], int]) -> None:
    parser.add_argument("request", metavar="FILE", help="where tasks are, their sizes and loads (.json, .parquet or -)")
    parser.add_argument("--nodes", type=int, required=True, help="how many nodes there shall be")
    parser.add_argument("--tau", type=float, required=True, help="how far a load may be above the mean: 0.2 is 20 %%")
    parser.set_defaults(run=run)


def _make(name: str, options: argparse.Namespace, current: Assignment, tasks: Tasks) -> Plan:
    start = current.intervals() if name in INTERVAL_PLANNERS else current
    request = {"nodes": options.nodes, "sizes": tasks.sizes, "loads": tasks.loads, "tau": options.tau}
    if name != "mtm-aware":
        return PLANNERS[name]()(start, **request)
    if options.tables is None:
        raise PlannerError("mtm-aware needs --tables FOLDER, written by python -m planners.spark")
    return planners.mtm_aware(start.intervals(), tables=planners.Tables.open(options.tables), **request)


def _plan(options: argparse.Namespace, current: Assignment, tasks: Tasks) -> int:
    plan = _make(options.planner, options, current, tasks)
    if options.output is not None:
        write_plan(options.output, plan)
    if options.json:
        print(json.dumps(document(plan)))
    else:
        print(report.summary(plan, schedule(plan), schedule(plan, pieces=False)))
    return OK


def _compare(options: argparse.Namespace, current: Assignment, tasks: Tasks) -> int:
    names = ["ssm", *(["mtm-aware"] if options.tables else []), "storm", "consistent-hashing", "redist"]
    plans: dict[str, Plan | Infeasible | PlannerError] = {}
    for name in names:
        try:
            plans[name] = _make(name, options, current, tasks)
        except PlannerError as error:
            if name not in INTERVAL_PLANNERS:
                raise  # the baselines refuse nothing but nonsense
            plans[name] = error
    print(report.comparison(plans))
    if options.picture is not None:
        from planners.cli.picture import draw  # matplotlib is no small import, and not everybody has it

        draw(options.picture, {name: plan for name, plan in plans.items() if isinstance(plan, Plan)})
    return OK


def _explain(options: argparse.Namespace, current: Assignment, tasks: Tasks) -> int:
    print(report.explanation(tasks, options.nodes, options.tau))
    if not is_feasible(tasks, Limits(options.nodes, options.tau)):
        return INFEASIBLE
    print(report.keeps(_make("ssm", options, current, tasks)))
    return OK
