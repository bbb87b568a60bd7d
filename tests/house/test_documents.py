"""Documents are true as far as a test can tell: their links lead somewhere, and what their programs import exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*FRONT, *sorted((ROOT / "docs").rglob("*.md"))]
OURS = ("dataflow", "megaphone", "planners", "nexmark", "bench")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchor(heading: str) -> str:
    """What GitHub makes of a heading.

    >>> anchor("Why a budget of 8 MiB?"), anchor("Decided, and why")
    ('why-a-budget-of-8-mib', 'decided-and-why')
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_no_merge_left_its_marks(page: Path) -> None:
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", prose(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, wanted = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        assert other.exists(), f"{target}: there is no such file"
        if wanted:
            headings = re.findall(r"^#+ (.+)$", prose(other), re.MULTILINE)
            assert wanted in map(anchor, headings), f"{target}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_what_programs_import_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for module, names in re.findall(r"^from ([\w.]+) import ([\w, ]+)", block, re.MULTILINE):
            if module.split(".")[0] in OURS:
                for name in names.split(","):
                    require(module, name.strip())


def require(module: str, name: str) -> None:
    if not hasattr(importlib.import_module(module), name):
        importlib.import_module(f"{module}.{name}")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_modules_named_in_prose_exist(page: Path) -> None:
    """`dataflow.state.native`, `megaphone.harness.tables.quantile_table`: a name in backticks can be imported."""
    if page.name == "CHANGELOG.md":
        return  # which also names what there was
    for dotted in re.findall(rf"`((?:{'|'.join(OURS)})(?:\.\w+)+)`", prose(page)):
        module, _, name = dotted.rpartition(".")
        try:
            importlib.import_module(dotted)
        except ModuleNotFoundError:
            require_attribute(module, name, dotted)


def require_attribute(module: str, name: str, dotted: str) -> None:
    """The name is in that module, or in a class of the module before it."""
    try:
        holder: object = importlib.import_module(module)
    except ModuleNotFoundError:
        outer, _, inner = module.rpartition(".")
        holder = getattr(importlib.import_module(outer), inner)
    assert hasattr(holder, name), f"there is no {dotted}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "measurements").glob("*.md")), ids=page_id)
def test_a_table_of_measurements_says_where_it_is_from(page: Path) -> None:
    """The command that gives it (or that it was measured by hand), the revision, and on the page the machine."""
    text = page.read_text(encoding="utf-8")
    if page.name == "README.md":
        return
    assert "**Machine**" in text
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        if "\n|" in section or "```" in section:
            title = section.partition("\n")[0]
            assert re.search(r"`python -m |by hand", section), f"{title}: no command"
            assert re.search(r"revision [0-9a-f]{7}", section), f"{title}: no revision"
