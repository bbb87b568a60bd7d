"""The README's programs pass `mypy --strict`; so do the examples, and the pages whose blocks are one program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("migration", "plans", "columns")
# On those pages functions are written as people write them first, without types; their bodies are checked all the same.
WITHOUT_TYPES = (
    "# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, disable-error-code=var-annotated\n"
)


def blocks(page: Path) -> list[str]:
    """Every block of Python of a page."""
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert found
    return found


def with_a_typed_worker(program: str) -> str:
    """The same program; what `main` does with its worker is checked."""
    return re.sub(r"\(worker(?=[,)])", "(worker: dataflow.Worker", program)


def test_programs_pass_mypy(tmp_path: Path) -> None:
    """One run of mypy, with the project's own settings, which are strict: it finds its cache."""
    for number, block in enumerate(blocks(ROOT / "README.md")):
        (tmp_path / f"readme_{number}.py").write_text(block)
    for page in PAGES:
        text = "\n".join(blocks(ROOT / "docs" / f"{page}.md"))
        (tmp_path / f"page_{page}.py").write_text(WITHOUT_TYPES + with_a_typed_worker(text))
    files = [*sorted(tmp_path.glob("*.py")), ROOT / "tests" / "typing" / "expectations.py"]
    files += sorted((ROOT / "examples").glob("*.py"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, files)], cwd=ROOT, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
