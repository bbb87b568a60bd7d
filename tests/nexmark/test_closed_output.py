"""A reader that goes away, as `head` does, is no reason for a traceback."""

from __future__ import annotations

import subprocess
import sys


def test_an_output_that_nobody_reads_any_more() -> None:
    command = [sys.executable, "-m", "nexmark", "run", "q2", "--events", "1000", "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(120) == 1
    assert "Traceback" not in told and "BrokenPipe" not in told
