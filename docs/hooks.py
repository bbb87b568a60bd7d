"""What mkdocs does besides: programs and deployment files, which pages link to, become pages of the site.

Pages are read in the repository as well, where `../examples/fraud.py` is a file. On the site it is
`sources/examples/fraud.py.md`.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
SHOWN = ("examples", "deploy")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".sbatch": "bash", ".service": "ini"}
_LINK = re.compile(r"\]\(((?:\.\./)+(?:" + "|".join(SHOWN) + r")/[^)#\s]+)\)")


def sources() -> dict[str, str]:
    """The pages that are made, by their names: each shows a file as it is."""
    paths = [path for folder in SHOWN for path in sorted((ROOT / folder).rglob("*"))]
    shown = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    return {f"sources/{path.relative_to(ROOT)}.md": _page(path) for path in shown}


def _page(path: Path) -> str:
    name = path.relative_to(ROOT)
    return f"# {path.name}\n\n`{name}`\n\n````{_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}````\n"


def on_files(files: Any, config: Any) -> Any:
    for name, text in sources().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **others: Any) -> str:
    here = dirname(page.file.src_uri)

    def instead(found: re.Match[str]) -> str:
        target = (ROOT / "docs" / here / found[1]).resolve().relative_to(ROOT)
        return f"]({relpath(f'sources/{target}.md', here or '.')})"

    return _LINK.sub(instead, markdown)
