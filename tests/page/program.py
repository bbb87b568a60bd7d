"""Programs to look at: orders with frequent customers and a loop that balances them; and one that is large."""

from __future__ import annotations

from random import Random

import numpy as np
import trio

import dataflow
import megaphone
from planners.loop import Driver, Loop, Observation, Proposal
from planners.loop.planning import LoopPlanner

MARKUP = "<img src=x onerror=alert(1)>"


def add(customer: str, amount: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    """A customer's running total."""
    total = (total or 0) + amount
    return total, [(customer, total)]


def lightest(seen: Observation, aim: float) -> Proposal:
    """The lightest bin of the busiest worker goes to the least busy one: a planner that compiles nothing."""
    loads = seen.loads(seen.places)
    mine = np.flatnonzero(seen.places == loads.argmax())
    bin = mine[seen.cost[mine].argmin()]
    to = seen.places.copy()
    to[bin] = loads.argmin()
    return Proposal(to, {}, seen.loads(to), float(seen.bytes[bin]), f"bin {bin}")


async def main(worker: dataflow.Worker, pause: str = "0.02", each: str = "200") -> None:
    """Sends orders for ever: `each` with each time, a `pause` between two times."""
    with worker.dataflow("orders") as scope:
        feed, orders = scope.input(name="orders")
        control, updates = scope.input(name="control")
        paid = orders.filter(lambda order: order[1] > 5, name="paid")
        totals = megaphone.state_machine(updates, paid, fold=add, bins=64, name="totals")
        large = totals.filter(lambda total: total[1] > 1000, name=MARKUP)
        probe = large.map(lambda total: total, name="show").probe()
    controller = megaphone.Controller(control, totals)
    planner = LoopPlanner("lightest", lightest, 0.02)
    loop = Driver(controller, Loop(planner, gain=0.0), dry_run=True) if worker.index == 0 else None
    chance, epoch = Random(worker.index), 0
    names = [f"customer {number}" for number in range(400)]
    weights = [1 / (number + 1) for number in range(len(names))]
    while True:
        feed.send([(name, chance.randrange(1, 100)) for name in chance.choices(names, weights, k=int(each))])
        epoch += 1
        feed.advance_to(epoch)
        controller.advance_to(epoch)
        if loop is not None:
            loop.step()
        await probe.wait_passed(epoch - 10)
        await trio.sleep(float(pause))


async def wide(worker: dataflow.Worker, operators: str = "1000", bins: str = "1048576") -> None:
    """Very many operators, and very many bins."""
    with worker.dataflow("wide") as scope:
        feed, stream = scope.input(name="numbers")
        control, updates = scope.input(name="control")
        totals = megaphone.state_machine(updates, stream, fold=add, bins=int(bins), name="totals")
        ends = [totals.filter(lambda _: True, name=f"branch {branch}") for branch in range(50)]
        for number in range(int(operators) - 50):
            ends[number % 50] = ends[number % 50].map(lambda total: total, name=f"step {number}")
        probe = scope.concat(ends).probe()
    epoch = 0
    while True:
        feed.send([(f"key {epoch % 500}", 1)])
        epoch += 1
        feed.advance_to(epoch)
        control.advance_to(epoch)
        await probe.wait_passed(epoch - 2)
        await trio.sleep(0.1)
