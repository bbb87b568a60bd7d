"""The map and the glossary name files that exist; the walk of a record is short, and crosses no border twice."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "internals" / "map.md"
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = ("dataflow", "megaphone", "planners", "nexmark", "bench", "tests", "docs")
FILE = re.compile(rf"`((?:{'|'.join(PACKAGES)})/[\w./-]*)`")


def named(text: str) -> list[str]:
    """The files and folders of this project that a text names, in their order."""
    return FILE.findall(text)


def section(page: Path, title: str) -> str:
    """What is under a heading, up to the next one of its level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page.read_text(), re.DOTALL | re.MULTILINE)
    assert found, f"{page.name} has no section {title!r}"
    return found[1]


@pytest.mark.parametrize("page", [MAP, GLOSSARY], ids=lambda page: page.name)
def test_what_a_page_names_exists(page: Path) -> None:
    names = named(page.read_text())
    assert len(names) > 50
    missing = sorted({name for name in names if not (ROOT / name).exists()})
    assert not missing, f"{page.name} names what is not there: {', '.join(missing)}"


def test_the_walk_of_a_record_is_short_and_crosses_no_border_twice() -> None:
    steps = re.findall(r"^\d+\. `([^`]+)`", section(MAP, "The way of a record"), re.MULTILINE)
    assert 20 < len(steps) < 35
    rooms = [str(Path(step).parent) for step in steps]
    borders = [(before, after) for before, after in pairwise(rooms) if before != after]
    twice = sorted({border for border in borders if borders.count(border) > 1})
    assert not twice, f"crossed twice: {twice}"


def test_every_room_is_in_the_table() -> None:
    table = set(named(section(MAP, "The rooms")))
    rooms = {
        f"{path.parent.relative_to(ROOT)}/"
        for package in ("dataflow", "megaphone", "planners", "nexmark")
        for path in (ROOT / package).rglob("__init__.py")
        if path.parent != ROOT / package and "plots" not in path.parts
    }
    assert rooms <= table, f"not in the table of rooms: {sorted(rooms - table)}"


def test_every_term_has_its_place() -> None:
    entries = re.findall(r"^\| \*\*(.+?\*\*(?: \([^)]*\))?) \|(.*)\|$", GLOSSARY.read_text(), re.MULTILINE)
    assert len(entries) > 80
    without = [term for term, rest in entries if not named(rest)]
    assert not without, f"no file is named for {without}"
    terms = [term.lower() for term, _ in entries]
    assert sorted(set(terms)) == sorted(terms), "a term is explained twice"


def test_every_term_is_found_where_the_glossary_sends_its_reader() -> None:
    lost = []
    for line in GLOSSARY.read_text().splitlines():
        terms = re.findall(r"\*\*(.+?)\*\*", line.split(" | ")[0]) if line.startswith("| **") else []
        text = _squeezed("".join(_text(ROOT / name) for name in named(line)))
        lost += [term for each in terms for term in each.split(", ") if _squeezed(term) not in text]
    assert not lost, f"not in the files that the glossary names: {lost}"


def _text(path: Path) -> str:
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return "".join(f"{file.name} {file.read_text()}" for file in files)


def _squeezed(text: str) -> str:
    """A term is written in one word or in several, as a name or as a heading."""
    return re.sub(r"[\s_#*-]", "", text.lower())
