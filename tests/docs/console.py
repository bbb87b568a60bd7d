"""Runs what a page shows: its files (blocks of Python with a title) and its commands (blocks of `console`, after a $).

Below a command stands what it prints. The order of lines does not matter, for several workers print. A line `...`
stands for any others, and a line that ends with `...` for all that begin like it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = "=== the next command ==="
_UP = "for _ in $(seq 600); do python -m dataflow list | grep -q '^{name} ' && break; sleep 0.1; done"


@dataclass
class Command:
    """A command, and the lines that are shown below it."""

    line: str
    shown: list[str] = field(default_factory=list)

    @property
    def shell(self) -> str:
        """For bash; a run that goes on beside is waited for until it can be asked."""
        name = re.search(r"--name (\w+)", self.line)
        if not self.line.endswith("&"):
            return self.line
        assert name is not None, f"{self.line}: a run in the background needs a name"
        return f"{self.line}\n{_UP.format(name=name[1])}"


def read_page(text: str) -> tuple[dict[str, str], list[Command]]:
    """The files and the commands of a page."""
    files: dict[str, str] = {}
    commands: list[Command] = []
    for language, title, body in FENCE.findall(text):
        if language == "python" and title:
            files[title] = body
        elif language == "console":
            for line in body.splitlines():
                if line.startswith("$ "):
                    commands.append(Command(line[2:]))
                else:
                    commands[-1].shown.append(line)
    return files, commands


def run_page(page: Path, folder: Path) -> list[tuple[Command, list[str]]]:
    """Each command of a page with the lines that it printed."""
    files, commands = read_page(page.read_text())
    for name, body in files.items():
        (folder / name).write_text(body)
    script = "\n".join(f"{command.shell}\necho '{_MARK}'" for command in commands)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    here = str(folder)
    done = subprocess.run(
        ["bash", "-c", f"trap 'kill $(jobs -p) 2>/dev/null' EXIT\n{script}"], cwd=folder, timeout=300, check=False,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": here, "TMPDIR": here},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    printed = done.stdout.split(f"{_MARK}\n")
    assert len(printed) == len(commands) + 1, done.stdout
    return [(command, lines.splitlines()) for command, lines in zip(commands, printed, strict=False)]


def differences(shown: list[str], printed: list[str]) -> list[str]:
    """What is not as it is shown.

    >>> differences(["a ...", "b"], ["b", "a 7"]), differences(["a", "..."], ["c", "a"])
    ([], [])
    >>> differences(["a", "b"], ["a", "c"])
    ['shown and not printed: b', 'printed and not shown: c']
    """
    left = list(printed)
    missing = []
    for line in shown:
        if line == "...":
            continue
        found = [other for other in left if (other.startswith(line[:-3]) if line.endswith("...") else other == line)]
        if found:
            left.remove(found[0])
        else:
            missing.append(f"shown and not printed: {line}")
    return missing + ([] if "..." in shown else [f"printed and not shown: {line}" for line in left])
