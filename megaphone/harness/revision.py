"""Which version of the project the numbers belong to."""

import subprocess
from pathlib import Path


def current_revision(directory: Path | None = None) -> str:
    """The commit that ``directory`` (else this project) is at, with ``-dirty`` if its code differs from it.

    Only what can change a number counts as code, untracked modules included; a file of results does not.
    Outside a repository, or before its first commit, the revision is ``unknown``; so it is when this project is
    installed somewhere inside a repository that is not its own.
    """
    where = directory or Path(__file__).parent
    if directory is None and _git(where, "ls-files", "--error-unmatch", "--", Path(__file__).name) is None:
        return "unknown"
    commit = _git(where, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return "unknown"
    changes = _git(where, "status", "--porcelain", "--", ":/*.py", ":/*.toml", ":/*.lock")
    return f"{commit}-dirty" if changes else commit


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
