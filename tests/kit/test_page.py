"""The programs on docs/testing.md are tests, and pass; and what they are for, they find."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_program_of_the_page(number: int) -> None:
    defined: dict[str, Any] = {"__name__": "page"}
    exec(compile(BLOCKS[number], f"{PAGE.name}, program {number}", "exec"), defined)
    tests = [value for name, value in defined.items() if name.startswith("test_")]
    assert len(tests) == 1
    tests[0]()
