"""The programs of docs/gallery.md print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.engine.test_examples import ROOT, output

PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"\(\.\./examples/(\w+\.py)\).*?^```\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("name", "printed"), SHOWN)
def test_the_output_is_as_shown(name: str, printed: str) -> None:
    path = ROOT / "examples" / name
    assert output(path) == printed
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


def test_there_are_seven() -> None:
    assert len(SHOWN) == 7
    assert all((Path(ROOT) / "examples" / name).exists() for name, _ in SHOWN)
