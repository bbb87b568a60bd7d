"""Plots and reports: they are drawn, they say what they show, and they show what was measured."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from megaphone.harness import Histogram, Outcome, Provenance, plots, write_document, write_report
from megaphone.harness.plots.style import PlotsNotInstalled
from tests.harness.made_up import recordings


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return Outcome.of(recordings(seconds=8, rate=10_000), warmup=1)


def texts(figure: Any) -> str:
    """All that is written on a figure."""
    from matplotlib.text import Text

    figure.canvas.draw()
    return "\n".join(text.get_text() for text in figure.findobj(Text) if text.get_visible())


def test_the_timeline_shows_the_timeline_s_numbers(outcome: Outcome) -> None:
    figure = plots.timeline(outcome, "Counting", "revision abc")
    (axes,) = figure.axes
    written = texts(figure)
    for part in ("Counting", "revision abc", "latency in ms", "time in s", "max", ".99", ".5", "fluid", "warm-up"):
        assert part in written
    rows = outcome.timeline.rows([1, 0.99, 0.5])
    lines = [line for line in axes.get_lines() if len(line.get_xdata()) == len(rows) + 1]
    for line, column in zip(lines, range(3), strict=True):
        drawn = np.asarray(line.get_ydata())[:-1]
        assert drawn == pytest.approx([values[column] / 1e6 for _, values in rows])
    assert axes.get_yscale() == "log"


def test_an_overloaded_run_says_so_in_the_picture(outcome: Outcome) -> None:
    given_up = recordings(seconds=8)
    for recording in given_up:
        del recording["through"][4000:], recording["at"][4000:]
        recording["gave_up"] = 9 * 10**9
    assert "never complete" in texts(plots.timeline(Outcome.of(given_up), "Too much"))
    assert "never complete" not in texts(plots.timeline(outcome, "Fine"))


def test_a_ccdf_is_a_staircase_of_what_was_recorded() -> None:
    slow, fast = Histogram(), Histogram()
    slow.record([1_000_000] * 90 + [50_000_000] * 10)
    fast.record([500_000] * 100)
    figure = plots.ccdf({"2^4": slow, "native": fast}, "Bins", ordered=True, reference=["native"], legend="bins")
    (axes,) = figure.axes
    line = axes.get_lines()[0]
    assert line.get_drawstyle() == "steps-post"
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([1.0, 0.1, 0.0])
    assert np.asarray(line.get_xdata()).tolist() == pytest.approx([1.0, 1.0, 50.0], rel=1 / 128)
    assert axes.get_lines()[1].get_linestyle() == "--"
    assert {"2^4", "native", "bins", "10 %"} <= set(texts(figure).splitlines())


def test_migrations_are_points(outcome: Outcome) -> None:
    found = plots.points(outcome, "1 M")
    assert [point.strategy for point in found] == ["all-at-once", "fluid", "batched"]
    assert found[0].seconds == pytest.approx(0.6)
    assert found[0].max_latency == max(m.during.greatest for m in outcome.migrations) / 1e9
    written = texts(plots.latency_against_duration(found, "Trade-off", legend="keys"))
    assert "duration of the migration in s" in written and "1 M" in written and "keys" in written


def test_other_plots_are_drawn(outcome: Outcome, tmp_path: Path) -> None:
    figures = {
        "panels": plots.timelines([("one", outcome), ("two", outcome)], "Two runs"),
        "memory": plots.memory(outcome, "Memory"),
        "memory panels": plots.memory_panels([("one", outcome), ("two", outcome)], "Memory of two runs"),
        "bars": plots.bars({"Q1": {"a": 1e6, "b": 2e6}, "Q2": {"b": 5e5}}, "Speed", "events/s", line=(1e6, "floor")),
    }
    assert "worker 1" in texts(figures["memory"]) and "GiB" in texts(figures["memory"])
    assert {"one", "two", "worker 1"} <= set(texts(figures["memory panels"]).splitlines())
    assert {"2 M", "500 k", "floor", "events/s"} <= set(texts(figures["bars"]).splitlines())
    for name, figure in figures.items():
        assert plots.save(figure, tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_empty_measurements_do_not_break_a_plot() -> None:
    texts(plots.ccdf({"none": Histogram()}, "Nothing"))
    texts(plots.memories({"worker 0": ([], [])}, "Nothing"))
    texts(plots.latency_against_duration([], "Nothing"))
    texts(plots.bars({}, "Nothing", "events/s"))


class Page(HTMLParser):
    """Checks that tags nest, and collects pictures and cells."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.pictures: list[str] = []
        self.cells: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in ("img", "meta", "br", "link"):
            self.open.append(tag)
        self.links += [value or "" for key, value in attributes if key in ("src", "href")]
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def test_the_report_is_one_page_with_all_of_it(outcome: Outcome, tmp_path: Path) -> None:
    provenance = Provenance(["python", "-m", "nexmark", "latency", "<q8>"])
    path = write_report(tmp_path / "report.html", outcome, provenance, "Q8 & co", notes=["a < b"])
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert len(page.links) == 4 and all(link.startswith("data:image/svg+xml;base64,") for link in page.links)
    for link in page.links:
        assert b"<svg" in base64.b64decode(link.partition(",")[2])
    for part in ("Q8 &amp; co", "a &lt; b", "&lt;q8&gt;", provenance.short_revision, provenance.machine["cpu"]):
        assert part in text
    assert outcome.statement in text and "1. all-at-once: during" in page.cells
    assert not re.search(r'(src|href)="http', text)


def test_the_document_has_revision_machine_and_command(outcome: Outcome, tmp_path: Path) -> None:
    provenance = Provenance(["python", "-m", "nexmark", "latency", "q8"])
    write_document(tmp_path / "run.json", provenance, outcome.document())
    document = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert document["command"] == "python -m nexmark latency q8"
    assert {"revision", "machine", "started", "latency_ms", "timeline", "migrations", "memory"} <= set(document)
    assert [migration["strategy"] for migration in document["migrations"]] == ["all-at-once", "fluid", "batched"]
    assert Histogram.from_dict(document["histogram_ns"]) == outcome.total


def test_without_matplotlib_it_says_what_to_install(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotsNotInstalled, match=re.escape("pip install 'megaphone-dataflow[plots]'")):
        plots.timeline(outcome, "Counting")


def test_matplotlib_is_not_imported_before_a_plot_is_drawn() -> None:
    code = "import sys, megaphone.harness, megaphone.harness.plots; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
