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
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    printed = re.findall(r"^```\n((?:read|left:).*?)^```$", text, re.DOTALL | re.MULTILINE)
    for block, shown in zip(blocks, printed, strict=True):
        exec(compile(block, str(PAGE), "exec"), names)
        assert capsys.readouterr().out == shown
