"""The program on docs/frames.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "frames.md"


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    text = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    exec(compile(block, str(PAGE), "exec"), names)
    (printed,) = re.findall(r"^```\n(read .*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert capsys.readouterr().out == printed
