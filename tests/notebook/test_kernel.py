"""In a real Jupyter kernel, where asyncio and threads run: tables, a live view with a stop button, errors in cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.arena import wait_until
from tests.notebook.kernel import ROOT, Kernel, started

pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")
pytest.importorskip("ipywidgets")


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with started() as running:
        yield running


PREPARED = """
import asyncio, threading, dataflow, megaphone, trio
from megaphone import col
asyncio.get_running_loop()                       # there is one
threading.Thread(target=threading.Event().wait, daemon=True).start()
numbers = megaphone.frame({"n": list(range(10)), "word": ["a", "b"] * 5})
"""


def test_tables_from_any_number_of_workers(kernel: Kernel) -> None:
    assert kernel.run(PREPARED).error == ""
    for workers, to, kind in ((1, "pandas", "pandas"), (2, "polars", "polars"), (3, "arrow", "pyarrow")):
        code = f"t = megaphone.collect(numbers.filter(col('n') > 6), workers={workers}, to={to!r})\n"
        code += "type(t).__module__.partition('.')[0], sorted(t['n'].tolist() if hasattr(t['n'], 'tolist') else "
        code += "[int(str(x)) for x in t['n']])"
        assert kernel.run(code).result["text/plain"] == f"('{kind}', [7, 8, 9])"
    output = kernel.run("numbers.head(3, to='pandas')")
    assert "text/html" in output.result and "word" in output.result["text/html"]


def test_the_head_of_what_never_ends(kernel: Kernel) -> None:
    kernel.run(PREPARED)
    output = kernel.run(
        "from dataflow import sources\n"
        "import itertools\n"
        "class Endless(sources.Partitions):\n"
        "    async def partitions(self):\n"
        "        return ['all']\n"
        "    def read(self, partition, position):\n"
        "        for n in itertools.count():\n"
        "            yield n, None, dataflow.columns.Columns({'n': [n, n]})\n"
        "megaphone.frame(Endless()).head(5, to='columns').rows()"
    )
    assert output.error == ""
    assert output.result["text/plain"] == "[(0,), (0,), (1,), (1,), (2,)]"


BAD = """
def bad(x):
    y = x - 1
    return 1 / y
async def main(worker):
    with worker.dataflow() as scope:
        scope.source([3, 2, 1]).map(bad)
dataflow.execute(main, workers=WORKERS)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_point_at_the_cell(kernel: Kernel, workers: int) -> None:
    kernel.run(PREPARED)
    error = kernel.run(BAD.replace("WORKERS", str(workers))).error
    assert re.search(r"your code: Cell In\s?\[\d+\], line 3, in bad: return 1 / y", error), error
    assert "at the record 1" in error


LIVE = """
from dataflow.notebook import live
def count(word, one, total):
    total = (total or 0) + one
    return total, [(word, total)]
async def endless(worker):
    with worker.dataflow("words") as scope:
        words, stream = scope.input()
        totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=16, name="totals")
        probe = totals.probe()
    n = 0
    while True:
        words.send([(f"w{n % 7}", 1)])
        n += 1
        words.advance_to(n)
        await probe.wait_passed(n - 5)
        await trio.sleep(0.001)
run = live(endless, workers=2, every=0.1)
run
"""


def test_a_live_view_with_a_stop_button(kernel: Kernel) -> None:
    kernel.run(PREPARED)
    output = kernel.run(LIVE)
    assert output.error == ""
    assert any("application/vnd.jupyter.widget-view+json" in data for data in output.displayed)
    view, button = kernel.widget("HTMLModel"), kernel.widget("ButtonModel")
    assert kernel.models[button]["description"] == "Stop"

    def shows_all() -> bool:
        kernel.run("None")  # hears what the widgets say meanwhile
        page = kernel.models[view]["value"]
        rates = re.findall(r"([\d,]+) records/s, [1-9]", page)
        return all(word in page for word in ("rate", "latency", "frontier", "worker 1: 8 bins", " ms")) and any(
            rate != "0" for rate in rates
        )

    wait_until(shows_all, lambda: kernel.models[view]["value"], 60)
    kernel.click(button)
    wait_until(lambda: kernel.run("run.state").result["text/plain"] == "'stopped'", "the end", 60)
    kernel.run("None")
    wait_until(lambda: bool(kernel.run("None")) and kernel.models[button]["disabled"], "a button that is off", 60)
    assert "stopped" in kernel.models[view]["value"]
    assert kernel.run("run.wait()").result["text/plain"] == "[]"


def test_a_failure_is_shown_and_raised(kernel: Kernel) -> None:
    kernel.run(PREPARED)
    kernel.run(BAD.rpartition("dataflow.execute")[0])
    output = kernel.run(
        "from dataflow.notebook import live\nrun = live(main)\ntry:\n    run.wait(60)\nfinally:\n    print(run.problem)"
    )
    assert "ZeroDivisionError" in output.error
    assert "your code: Cell In" in output.text and "in bad: return 1 / y" in output.text


INTERRUPTED = """
import os, signal, threading, time
def interrupt():
    while not os.path.exists(flag):
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)
async def flagged(worker):
    open(flag, "w").close()
    await endless(worker)
threading.Thread(target=interrupt).start()
dataflow.execute(flagged, workers=WORKERS)
"""


def test_interrupting_a_cell_ends_its_run(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(PREPARED)
    kernel.run(LIVE.partition("run = live")[0])
    for workers in (1, 2):
        kernel.run(f"flag = {str(tmp_path / str(workers))!r}")
        assert "KeyboardInterrupt" in kernel.run(INTERRUPTED.replace("WORKERS", str(workers))).error
    assert kernel.run("1 + 1").result["text/plain"] == "2"


def test_the_page_is_a_notebook(kernel: Kernel) -> None:
    """The programs of docs/notebooks.md, cell by cell."""
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        output = kernel.run(block)
        assert output.error == "", output.error
    assert kernel.run("results, first.rows(), sorted(table.rows())").result["text/plain"] == (
        "([999, 999], [('DE', 3), ('FR', 5)], [('DE', 3), ('DE', 4), ('FR', 5)])"
    )
