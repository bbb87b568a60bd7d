"""The screenshots of the live page in the README: `python docs/pictures/screens.py` runs a shop and looks at it.

It needs Chromium and its driver, and the extras `page` and `dev`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import trio

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

import dataflow  # noqa: E402 (found by the path above, when this file is run as a program)
import megaphone  # noqa: E402
from planners.loop import Driver, Loop, by_bins  # noqa: E402


def add(customer: str, amount: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    """A customer's running total."""
    total = (total or 0) + amount
    return total, [(customer, total)]


def visit(customer: str, page: int, pages: int | None) -> tuple[int, list[tuple[str, int]]]:
    """How many pages a customer has seen."""
    pages = (pages or 0) + 1
    return pages, [(customer, pages)]


async def main(worker: dataflow.Worker) -> None:
    """A shop: clicks and orders of customers, of whom a few are frequent."""
    with worker.dataflow("shop") as scope:
        control, updates = scope.input(name="control")
        orders, order_stream = scope.input(name="orders")
        clicks, click_stream = scope.input(name="clicks")
        paid = order_stream.filter(lambda order: order[1] > 5, name="paid")
        totals = megaphone.state_machine(updates, paid, fold=add, bins=256, name="totals")
        people = click_stream.filter(lambda click: click[1] != 7, name="no robots")
        visits = megaphone.state_machine(updates, people, fold=visit, bins=256, name="visits")
        large = totals.filter(lambda total: total[1] > 1000, name="large")
        seen = large.concat(visits.filter(lambda pages: pages[1] % 10 == 0, name="tenth page"), name="news")
        probe = seen.map(lambda pair: pair, name="mail").probe()
    controller = megaphone.Controller(control, totals)
    loop = Driver(controller, Loop(by_bins()), dry_run=True) if worker.index == 0 else None
    chance, epoch = Random(worker.index), 0
    names = [f"customer {number}" for number in range(5000)]
    weights = [1 / (number + 3) for number in range(len(names))]
    while True:
        orders.send([(name, chance.randrange(1, 100)) for name in chance.choices(names, weights, k=60)])
        clicks.send([(name, chance.randrange(9)) for name in chance.choices(names, weights, k=150)])
        epoch += 1
        for handle in (orders, clicks):
            handle.advance_to(epoch)
        controller.advance_to(epoch)
        if loop is not None:
            loop.step()
        await probe.wait_passed(epoch - 20)
        await trio.sleep(0.04)


@contextmanager
def running() -> Iterator[str]:
    """The shop with its page: the address."""
    command = [sys.executable, "-m", "dataflow", "run", "docs.pictures.screens:main", "--workers", "3"]
    command += ["--name", "shop", "--page"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=HERE.parents[1]) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://\S+", line):
                yield found[0]
                break
        process.terminate()
        process.communicate()


def take() -> None:
    """Takes the pictures."""
    from tests.page.browser import browsing

    with running() as address, browsing() as viewer:
        viewer.open(address)
        viewer.says("#link", "live")
        viewer.run("document.documentElement.dataset.theme === 'dark' && document.getElementById('theme').click()")
        viewer.wait(lambda: len(viewer.all(".node")) > 8)
        time.sleep(8)
        viewer.one("[data-operator='5']").click()
        viewer.chrome.save_screenshot(str(HERE / "page-graph.png"))
        viewer.show("bins")
        viewer.wait(lambda: len(viewer.all("#bins .cell")) == 256)
        cells = viewer.all("[data-worker='0'] .cell")
        viewer.pick(cells[4], cells[40])
        viewer.one("#bins-strategy").clear()
        viewer.one("#bins-strategy").send_keys("batched:4")
        viewer.drag(cells[10], viewer.one("[data-worker='2'] h3"))
        viewer.wait(lambda: re.match("under way: [1-9]", viewer.text("#bins-said")))
        viewer.chrome.save_screenshot(str(HERE / "page-bins.png"))
        viewer.says("#bins-said", "done")
        viewer.run("document.getElementById('theme').click()")
        viewer.show("latency")
        time.sleep(15)
        viewer.chrome.save_screenshot(str(HERE / "page-latency.png"))


if __name__ == "__main__":
    take()
