"""The page in a real browser: views show the numbers that the run has, a drag migrates, and nobody else gets in."""

from __future__ import annotations

import re

from selenium.webdriver import Keys

from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question
from dataflow.run.bins import BinsReading
from tests.page.browser import Viewer, serving_elsewhere
from tests.page.conftest import Shown, shown
from tests.page.program import MARKUP


def owners(page: Shown) -> dict[int, int]:
    """By bin, its worker: what the run says."""
    (reading,) = ask_run(  # type: ignore[misc]
        page.name, Question("bins", {"operator": "totals", "first": 0, "last": 63, "cells": 64}), 30.0
    )
    assert isinstance(reading, BinsReading)
    return dict(zip(reading.cell_first[reading.cell].tolist(), reading.worker.tolist(), strict=True))


def test_the_graph_has_the_operators_of_the_run_with_their_numbers(looking: Viewer, page: Shown) -> None:
    (part,) = {part.name: part for worker in page.status().workers for part in worker.dataflows}.values()
    looking.wait(lambda: len(looking.all("#graph .node")) == len(part.operators))
    names = looking.run("return [...document.querySelectorAll('.node title')].map((each) => each.textContent)")
    assert names == [f"{each.name} (#{each.number})" for each in part.operators]
    edges = sum(edge.source >= 0 for each in part.operators for edge in each.edges)
    assert len(looking.all("#graph path.edge")) == edges
    looking.one("[data-operator='4']").click()
    looking.says("#operator", "totals S (#4)")

    def records() -> list[int]:
        return [sum(p.operators[4].records_in for w in page.status().workers for p in w.dataflows)]

    before = records()[0]
    looking.wait(lambda: (shown_records(looking) or 0) >= before)  # what the page shows is what was counted since
    assert shown_records(looking) <= records()[0]
    assert re.search(r"\d+ % busy · [\d.,]+k?/s", looking.text("[data-operator='4']"))


def shown_records(looking: Viewer) -> int:
    """How many records the page says came to the operator that is chosen."""
    return int(
        looking.run(  # type: ignore[call-overload]
            "return (await import('/static/page.js')).state.look.dataflows[0].total_in[4]"
        )
    )


def test_frontiers_are_drawn_from_who_holds_to_who_waits(looking: Viewer) -> None:
    looking.show("frontiers")
    looking.wait(lambda: looking.all("#frontiers .chain .holder") and looking.all("#frontiers .chain .waiter"))

    def chain() -> list[str]:
        last = "[...document.querySelectorAll('#frontiers .waiting')].at(-1)"
        steps = f"{last}?.querySelectorAll('.chain:last-child .step')"
        found = looking.run(f"return [...({steps} ?? [])].map((each) => each.firstChild.textContent)")
        assert isinstance(found, list)
        return found

    found = looking.wait(lambda: (steps := chain()) and steps[-1].startswith("show") and steps)
    assert found[-1] == "show (#7)" and found[-2] == f"{MARKUP} (#6)"
    assert re.search(r"holds \d+, (worker|on the way)", looking.text("#frontiers .chain .holder"))
    assert "capability at output 0" in looking.text("#frontiers table")


def test_a_drag_on_the_bins_migrates_and_is_marked_on_the_curves(looking: Viewer, page: Shown) -> None:
    looking.show("bins")
    looking.wait(lambda: len(looking.all("#bins .cell")) == 64)
    assert "32 bins" in looking.text("[data-worker='0'] .total")
    before = owners(page)
    mine = [bin for bin, worker in sorted(before.items()) if worker == 0]
    cells = looking.all("[data-worker='0'] .cell")
    looking.one("#bins-strategy").clear()
    looking.one("#bins-strategy").send_keys("fluid")
    looking.pick(cells[0], cells[4])
    looking.says("#bins-chosen", "5 bins of worker 0 chosen")
    looking.drag(cells[2], looking.one("[data-worker='1'] h3"))
    said = looking.says("#bins-said", "done: ")
    assert "5 of 5 bins moved, 5 of 5 steps (fluid)" in said
    after = owners(page)
    assert after == {**before, **dict.fromkeys(mine[:5], 1)}
    looking.says("[data-worker='1'] .total", "37 bins")
    marks = [mark for worker in page.status().workers for mark in worker.marks if mark[1] == "migration"]
    assert len(marks) == 1 and marks[0][2] == "totals: fluid, 5 of 5 bins, 5 of 5 steps" and marks[0][3] > marks[0][0]
    looking.show("latency")
    looking.says("#marks", "totals: fluid, 5 of 5 bins, 5 of 5 steps")  # with the next news: until then it is under way
    assert len(looking.all("#latency canvas")) == 3


def test_bins_are_chosen_and_moved_with_keys_alone(looking: Viewer, page: Shown) -> None:
    before = owners(page)
    looking.one("body").send_keys("4")
    looking.wait(lambda: len(looking.all("#bins .cell")) == 64)
    first = looking.one("[data-worker='1'] .cell")
    looking.run("arguments[0].focus()", first)
    active = looking.chrome.switch_to.active_element
    active.send_keys(Keys.SHIFT, Keys.ARROW_RIGHT)
    looking.says("#bins-chosen", "2 bins of worker 1 chosen")
    looking.run("document.getElementById('bins-target').value = '0'")
    looking.one("#bins-dry").send_keys(Keys.ENTER)
    looking.says("#bins-said", "2 bins would move")
    assert owners(page) == before
    looking.one("#bins-move").send_keys(Keys.ENTER)
    looking.says("#bins-said", "done: 2 of 2 bins moved")
    assert sum(owners(page)[bin] != worker for bin, worker in before.items()) == 2


def test_heavy_keys_and_costs_of_bins_are_those_of_the_run(looking: Viewer, page: Shown) -> None:
    looking.show("bins")
    assert "'customer 0'" in looking.says("#bins .side table", "customer 0")
    total = sum(state.bytes for worker in page.status().workers for part in worker.dataflows for state in part.state)
    cells = "[...document.querySelectorAll('#bins .cell')]"
    told = looking.run(f"return {cells}.reduce((sum, each) => sum + each.cell.bytes, 0)")
    assert isinstance(told, int) and 0 < told <= 1.05 * total  # reports are a moment old, and state grows


def test_a_timeline_has_the_steps_of_operators(looking: Viewer) -> None:
    looking.show("timeline")
    looking.run("document.getElementById('timeline-seconds').value = '0.2'")
    looking.one("#timeline-record").click()
    assert re.search(r"worker 0: \d+ steps.*worker 1: \d+ steps", looking.says("#timeline-said", "steps,"))
    assert "totals S (#4)" in looking.text("#timeline table")


def test_decisions_have_their_reasons_and_a_switch(looking: Viewer, page: Shown) -> None:
    looking.show("loops")
    looking.says("#loops h2", "where bins are (lightest), at worker 0")
    assert "(dry run)" in looking.says("#loops .loop", "moves bin")
    box = looking.one("#loops .dry")
    assert box.is_selected()
    box.click()
    looking.wait(lambda: not looking.one("#loops .dry").is_selected())
    switched = ask_run(page.name, Question("loops"), 30.0)
    assert switched[0][1][0][1] is False  # type: ignore[index]
    marks = "[...document.querySelectorAll('#loops .decision.acts')].filter((each) => !each.querySelector('em')).length"
    looking.wait(lambda: looking.run(f"return {marks}"))  # it acts now
    looking.one("#loops .dry").click()
    looking.wait(lambda: looking.one("#loops .dry").is_selected())


def test_names_with_markup_are_text(looking: Viewer) -> None:
    for view in ("graph", "frontiers", "timeline", "loops"):
        looking.show(view)
        looking.wait(lambda view=view: looking.text(f"#{view}"))  # type: ignore[misc]
    assert looking.all("main img") == [] and looking.all("main script") == []
    assert MARKUP in looking.text("#graph .side")


def test_light_and_dark_and_keys(looking: Viewer) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    before = looking.run(background)
    looking.one("body").send_keys("d")
    assert looking.run(background) != before
    looking.one("body").send_keys("d")
    assert looking.run(background) == before
    for number, view in enumerate(("graph", "frontiers", "latency", "bins", "timeline", "loops"), 1):
        looking.one("body").send_keys(str(number))
        looking.wait(lambda view=view: looking.one(f"#{view}").is_displayed())  # type: ignore[misc]
    looking.one("body").send_keys("1")
    looking.one("[data-operator='0']").click()
    looking.one("body").send_keys(Keys.ARROW_RIGHT)
    looking.says("#operator", "paid")
    looking.one("body").send_keys("?")
    looking.wait(lambda: looking.one("#keys").is_displayed())
    looking.chrome.switch_to.active_element.send_keys(Keys.ESCAPE)


def test_a_token_is_needed(viewer: Viewer, page: Shown) -> None:
    for address in (page.origin, f"{page.origin}/#token=wrong"):
        viewer.open("about:blank")
        viewer.open(f"{page.origin}/static/page.css")
        viewer.run("sessionStorage.clear()")
        viewer.open(address)
        assert "token is missing or wrong" in viewer.says("#link", "token")
        assert viewer.all(".node") == []


def test_no_other_origin_gets_anything(viewer: Viewer, page: Shown) -> None:
    with serving_elsewhere() as other:
        viewer.open(other)
        for path, headers in (("/api/loops", {"Authorization": f"Bearer {page.token}"}), ("/", {})):
            answer = viewer.chrome.execute_async_script(
                "const [address, headers, tell] = arguments; fetch(address, {headers}).then((r) => r.text())"
                ".then((t) => tell('read: ' + t), (e) => tell('refused: ' + e))",
                page.origin + path, headers,
            )  # fmt: skip
            assert answer.startswith("refused: "), answer
        assert viewer.chrome.current_url.startswith(other)


def test_nothing_leaves_the_machine(viewer: Viewer, page: Shown) -> None:
    viewer.complaints()  # of pages before this one
    viewer.open(page.address)
    viewer.says("#facts", "2 workers")
    for view in ("frontiers", "latency", "bins", "timeline", "loops", "graph"):
        viewer.show(view)
    asked = [address for address in viewer.requests() if "://" in address]
    assert asked and all(address.startswith(page.origin) for address in asked)
    assert viewer.complaints() == []


def test_it_works_with_a_thousand_operators_and_a_million_bins(viewer: Viewer) -> None:
    with shown("wide") as page:
        viewer.open(page.address)
        viewer.says("#facts", "2 workers")
        viewer.wait(lambda: len(viewer.all("#graph .node")) > 1000)
        viewer.one("#graph input").send_keys("step 949")
        viewer.says("#operator", "step 949")
        viewer.one("#graph input").send_keys(Keys.TAB)
        viewer.show("bins")
        viewer.says("#bins", "1,048,576 bins")
        viewer.wait(lambda: len(viewer.all("#bins .cell")) == 2 * 2048)
        viewer.says("[data-worker='0'] .total", "524,288 bins")
