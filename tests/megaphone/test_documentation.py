"""Every block of Python in the pages on migration, plans and columns runs: the blocks of a page are one program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["migration", "plans", "columns"])
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 2 and text.count("```") == 2 * len(blocks), "no block is left out"
    program = tmp_path / f"{page}_page.py"  # folds are compiled from their file
    program.write_text("\n".join(blocks))
    command = [sys.executable, "-W", "error", program.name]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
