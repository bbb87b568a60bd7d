"""The whole test suite in two halves at once, for machines with two cores: `python -m tests.halves`.

The second half is what needs no engine on several processes; its output is shown when the first has ended.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

FIRST = ("tests", "dataflow", "megaphone", "bench")
SECOND = (
    "tests/planners", "tests/nexmark", "tests/harness", "tests/columns", "tests/state", "tests/recovery",
    "tests/crashes", "tests/plans", "planners", "nexmark",
)  # fmt: skip


def main() -> int:
    """Runs both; the exit code is that of the first that failed."""
    pytest = [sys.executable, "-m", "pytest"]
    with tempfile.TemporaryFile() as output:
        second = subprocess.Popen([*pytest, "-p", "no:cacheprovider", *SECOND], stdout=output, stderr=subprocess.STDOUT)
        first = subprocess.run([*pytest, *FIRST, *(f"--ignore={path}" for path in SECOND)], check=False)
        second.wait()
        output.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(output.read())
    return first.returncode or second.returncode


if __name__ == "__main__":
    sys.exit(main())
