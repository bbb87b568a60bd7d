"""Whatever a kernel depends on makes other code when it changes; and every kernel of ours is kept our way."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

import dataflow
from dataflow.compiled import stamp

ROOT = Path(dataflow.__file__).parents[1]
OTHER = """
from numba import njit
from numba.extending import intrinsic
from constants import DEEP
@njit
def called(x):
    return x + DEEP
"""
KERNEL = """
from constants import NEAR, UNUSED
from other import called
def function(x):
    return called(x) * NEAR
"""
CONSTANTS = "NEAR, DEEP, UNUSED = 2, 3, 4\n"


def stamped(folder: Path, other: str = OTHER, kernel: str = KERNEL, constants: str = CONSTANTS) -> str:
    for name, text in {"other": other, "kernel_of_ours": kernel, "constants": constants}.items():
        (folder / f"{name}.py").write_text(text)
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    stamp._source.cache_clear()
    import linecache

    linecache.clearcache()
    return stamp.stamp(importlib.import_module("kernel_of_ours").function)


def test_what_is_called_and_constants_from_elsewhere_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two changes may fall into one second
    first = stamped(tmp_path)
    changed = [
        stamped(tmp_path, kernel=KERNEL.replace("* NEAR", "- NEAR")),
        stamped(tmp_path, other=OTHER.replace("+ DEEP", "- DEEP")),
        stamped(tmp_path, constants=CONSTANTS.replace("2,", "20,")),
        stamped(tmp_path, constants=CONSTANTS.replace("3,", "30,")),
    ]
    assert len({first, *changed}) == 5
    assert stamped(tmp_path) == first == stamped(tmp_path, constants=CONSTANTS.replace("4", "40"))


def test_no_kernel_of_ours_is_kept_by_numba() -> None:
    """numba's cache reads what others may have written, and stops where it cannot write."""
    wrong = []
    for package in ("dataflow", "megaphone", "planners", "nexmark", "bench"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and any(keyword.arg == "cache" for keyword in node.keywords):
                    wrong.append(f"{path}:{node.lineno}")
    assert wrong == []
