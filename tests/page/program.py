"""A program to look at: orders with frequent customers, a loop that balances them, and a name that is no markup."""

from __future__ import annotations

from random import Random

import trio

import dataflow
import megaphone
from planners.loop import Driver, Loop, by_bins

MARKUP = "<img src=x onerror=alert(1)>"


def add(customer: str, amount: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    """A customer's running total."""
    total = (total or 0) + amount
    return total, [(customer, total)]


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
    loop = Driver(controller, Loop(by_bins()), dry_run=True) if worker.index == 0 else None
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
