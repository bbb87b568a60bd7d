"""Every program of the tutorial and of the pages on papers runs, and prints what its page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.console import ROOT, differences, run_page

STEPS = sorted((ROOT / "docs" / "tutorial").glob("[0-9]*.md"))
PAPERS = sorted((ROOT / "docs" / "papers").glob("[a-z]*.md"))


def test_there_are_six_steps() -> None:
    assert [page.name[0] for page in STEPS] == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("page", [*STEPS, *PAPERS], ids=lambda page: page.stem)
def test_a_page(page: Path, tmp_path: Path) -> None:
    for command, printed in run_page(page, tmp_path):
        wrong = differences(command.shown, printed)
        assert not wrong, "\n".join([f"$ {command.line}", *wrong, "", "it printed:", *printed])
