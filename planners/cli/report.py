"""Plans, comparisons and explanations as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planners.errors import Infeasible, PlannerError, round_up
from planners.intervals.feasibility import is_feasible, smallest_tau, tightest_cuts
from planners.links.schedule import Schedule, schedule
from planners.model import Intervals, Limits, Plan, Tasks, node_loads

SHOWN = 20  # moves that a summary lists


def table(rows: Sequence[Sequence[object]], headings: Sequence[str]) -> str:
    """Aligned columns under headings; numbers flush right.

    >>> print(table([["ssm", 9], ["storm", 21.5]], ["planner", "cost"]))
    planner  cost
    ssm         9
    storm    21.5
    """
    cells = [list(headings), *([number(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    left = [not any(isinstance(row[i], int | float) for row in rows) for i in range(len(headings))]
    lines = (
        "  ".join(cell.ljust(w) if flush else cell.rjust(w) for cell, w, flush in zip(row, widths, left, strict=True))
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def number(value: object) -> str:
    """Whole numbers whole, others with four digits.

    >>> [number(value) for value in (12, 1234567.0, 0.25490196, True, "x")]
    ['12', '1234567', '0.2549', 'yes', 'x']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:.4g}"
    return str(value)


def summary(plan: Plan, pieces: Schedule, whole: Schedule) -> str:
    """What a plan does."""
    moved = f"{number(plan.cost)} of {number(plan.tasks.total_size)}"
    over = "" if plan.met else "; MORE THAN WAS ASKED FOR"
    times = f"{number(pieces.total)} in pieces, {number(whole.total)} in whole bins"
    lines = [
        f"{plan.planner}: {moved} moves ({plan.share:.1%} of the state, {len(plan.moves)} of {len(plan.tasks)} tasks)",
        f"greatest load {plan.balance:.1%} above the mean{over}",
        f"at one unit of size per unit of time and link: {times} ({whole.distance:.1%} above the bound)",
        "",
        keeps(plan),
    ]
    if plan.moves:
        lines += ["", table(plan.moves[:SHOWN], ["task", "from", "to"])]
    if len(plan.moves) > SHOWN:
        lines.append(f"... and {len(plan.moves) - SHOWN} more (--json shows all)")
    return "\n".join(lines)


def keeps(plan: Plan) -> str:
    """By node: what it has, keeps, takes in and gives away."""
    before, after, sizes = plan.current.map(), plan.map(), plan.tasks.sizes
    rows = []
    for node in sorted({*plan.current.nodes, *plan.assignment.nodes}):
        was, is_ = before == node, after == node
        status = "leaves" if node not in plan.assignment.nodes else "joins" if node not in plan.current.nodes else ""
        amounts = [sizes[was & is_].sum().item(), sizes[is_ & ~was].sum().item(), sizes[was & ~is_].sum().item()]
        rows.append([node, tasks_of(plan, node), plan.loads.get(node, 0), *amounts, status])
    return table(rows, ["node", "tasks", "load", "keeps", "takes in", "gives away", ""])


def tasks_of(plan: Plan, node: int) -> str:
    """Which tasks a node has afterwards, briefly."""
    assignment = plan.assignment
    if isinstance(assignment, Intervals):
        if node not in assignment.nodes:
            return "-"
        place = assignment.nodes.index(node)
        begin, end = assignment.cuts[place : place + 2]
        return f"{begin}..{end - 1}" if begin < end else "none"
    return f"{assignment.owners.count(node)} tasks"


def comparison(plans: Mapping[str, Plan | PlannerError]) -> str:
    """A line for each planner; what one refused stands below."""
    rows: list[list[object]] = []
    refused = []
    for name, plan in plans.items():
        if isinstance(plan, Infeasible):
            rows.append([name, "infeasible", "", "", f"from {round_up(plan.smallest_tau)}", "", ""])
        elif isinstance(plan, PlannerError):
            rows.append([name, "refused", "", "", "", "", ""])
            refused.append(f"{name}: {plan}")
        else:
            whole = schedule(plan, pieces=False)
            time, over = number(whole.lower_bound), f"+{whole.distance:.1%}"
            share = f"{plan.share:.1%}"
            rows.append(
                [name, number(plan.cost), share, len(plan.moves), f"{plan.balance:+.1%}", plan.met, f"{time} {over}"]
            )
    headings = ["planner", "cost", "of all", "tasks", "balance", "within tau", "time, whole bins"]
    return "\n".join([table(rows, headings), *refused])


def explanation(tasks: Tasks, nodes: int, tau: float) -> str:
    """Whether tasks can be balanced so, what stands in the way, and what would do instead."""
    limits, least = Limits(nodes, tau), smallest_tau(tasks, nodes)
    mean = tasks.total_load / nodes
    cuts = tightest_cuts(tasks, nodes)
    loads = node_loads(Intervals(cuts), tasks.loads)
    worst = max(loads, key=lambda i: loads[i])
    verdict = "feasible" if is_feasible(tasks, limits) else "INFEASIBLE"
    where = f"of the tasks {cuts[worst]}..{cuts[worst + 1] - 1}"
    lines = [
        f"{nodes} nodes within tau = {tau:g}: {verdict}. The smallest tau is {round_up(least)}.",
        f"The mean load is {number(float(mean))}, so a node may have {number(round((1 + tau) * mean, 9))}.",
        f"The most even cut is {', '.join(map(str, cuts))}: its greatest load is {number(loads[worst])}, {where}.",
    ]
    heaviest = int(tasks.loads.argmax())
    if tasks.loads[heaviest] > limits.load(tasks.total_load):
        lines.append(
            f"Task {heaviest} alone has {number(tasks.loads[heaviest].item())}: no cut helps. Split it (more bins), or "
            "take fewer nodes."
        )
    counts = range(max(1, nodes - 3), nodes + 4)
    rows = [[n, f"{round_up(smallest_tau(tasks, n)):.6f}", is_feasible(tasks, Limits(n, tau))] for n in counts]
    return "\n".join([*lines, "", table(rows, ["nodes", "smallest tau", "within this tau"]), ""])
