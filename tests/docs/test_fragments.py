"""Every block of Python of every page runs: here with what stands around it, or in a test that is named here."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.docs.console import FENCE, ROOT
from tests.docs.surroundings import SHORTER, SURROUNDINGS

DOCS = ROOT / "docs"
ELSEWHERE = {
    "columns": "megaphone/test_documentation.py",
    "connectors": "connectors/test_page.py",
    "frames": "frames/test_page.py",
    "migration": "megaphone/test_documentation.py",
    "notebooks": "notebook/test_kernel.py",
    "plans": "megaphone/test_documentation.py",
    "testing": "kit/test_page.py",
    "windows": "windows/test_page.py",
    "writing-connectors": "connectors/test_page.py",
}
"""Pages whose blocks are run by another test, and which."""
NOT_RUN = {("recovery", 2): "crashes/", ("running", 2): "spark/", ("autoscaling", 1): "launch/"}
"""Blocks that need more than a page has (a savepoint, a Spark cluster, another shell), and where tests have it."""


def blocks(page: Path) -> list[str]:
    return [body for language, title, body in FENCE.findall(page.read_text()) if language == "python" and not title]


def put_in(template: str, page: str, found: list[str]) -> tuple[str, set[int]]:
    """The program, and which blocks are in it."""
    used: set[int] = set()
    lines: list[str] = []
    for line in template.splitlines():
        place = re.fullmatch(r"( *)@(\d)(?:\[(\d*):(\d*)\])?", line)
        if place is None:
            lines.append(line)
            continue
        indent, number, low, high = place.groups()
        used.add(int(number))
        block = found[int(number)].splitlines()[int(low) if low else None : int(high) if high else None]
        lines += [f"{indent}{each}" if each else "" for each in block]
    program = "\n".join(lines) + "\n"
    for long, short in SHORTER.get(page, []):
        assert long in program, f"{page}: {long!r} is no longer there"
        program = program.replace(long, short)
    return program, used


@pytest.mark.parametrize("page", SURROUNDINGS)
def test_the_fragments_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks(DOCS / f"{page}.md")
    program, used = put_in(SURROUNDINGS[page], page, found)
    left = set(range(len(found))) - used - {number for name, number in NOT_RUN if name == page}
    assert not left, f"blocks {left} of {page}.md are not run"
    path = tmp_path / f"page_{page.replace('-', '_')}.py"
    path.write_text(program)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")


def test_no_page_is_left_out() -> None:
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md") if blocks(path)}
    assert pages == {*SURROUNDINGS, *ELSEWHERE}
    for page, test in ELSEWHERE.items():
        assert page in (ROOT / "tests" / test).read_text(), f"{test} does not run {page}.md"
