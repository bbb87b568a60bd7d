"""The site builds without a warning, has every page and every public name, and asks no other host for anything."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.console import ROOT

_OURS = ("sources", "sinks", "windows", "joins", "testing", "lowlevel")
_FRONT = ("dataflow", "megaphone", "planners", "nexmark")
PACKAGES = {name: name for name in _FRONT} | {name: f"dataflow.{name}" for name in _OURS} | {"plans": "planners.plans"}
"""By page of the reference, whose names it has."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_menu() -> None:
    menu = re.findall(r"^ +- (?:\w+: )?([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert set(menu) == pages and len(set(menu)) == len(menu)


@pytest.mark.parametrize("page", PACKAGES)
def test_the_reference_has_every_public_name(page: str) -> None:
    module = importlib.import_module(PACKAGES[page])
    names = [name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)]
    shown = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs" / "reference" / f"{page}.md").read_text(), re.MULTILINE)
    assert shown == [f"{module.__name__}.{name}" for name in names]


def test_names_have_their_place_on_the_site(site: Path) -> None:
    text = (site / "reference" / "megaphone.html").read_text()
    assert 'id="megaphone.Controller.migrate"' in text and "Paces migrations by the output frontier" in text
    assert "&gt;&gt;&gt; " in (site / "reference" / "planners.html").read_text()  # doctests are shown as code


def test_programs_are_pages(site: Path) -> None:
    assert 'href="sources/examples/fraud.py.html"' in (site / "gallery.html").read_text()
    assert (site / "sources" / "examples" / "fraud.py.html").exists()


def test_no_other_host_is_asked(site: Path) -> None:
    for page in site.rglob("*.html"):
        outside = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//[^\">]+", page.read_text())
        assert not outside, f"{page.name}: {outside}"
