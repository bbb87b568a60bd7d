"""The list of names that users import from megaphone."""

from __future__ import annotations

import subprocess
import sys

import pytest

import megaphone

NAMES = """
    Assign ControlError Controller Group Merge Move Moves Pin Pins Replan Split Unpin all_at_once as_of_join batched
    binary col collect deduplicate dense fluid fold follow frame interval_join join matched opaque plans read_control
    spelled state_machine table_join unary window window_join within
"""


def test_the_front_door() -> None:
    assert sorted(megaphone.__all__) == sorted(NAMES.split())
    assert all(getattr(megaphone, name).__doc__ for name in megaphone.__all__)
    with pytest.raises(AttributeError, match="no attribute 'split'"):
        _ = megaphone.split  # type: ignore[attr-defined]


def test_a_program_of_rows_does_not_wait_for_the_compiler() -> None:
    code = "import sys, dataflow, megaphone; print([m for m in ('numba', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
