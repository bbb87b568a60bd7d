"""Machine and revision: what makes a number mean something later."""

import os
import subprocess
from pathlib import Path

import pytest

from megaphone.harness import machine
from megaphone.harness.revision import current_revision


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "code.py").write_text("x = 1\n")
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def test_a_clean_tree_is_its_commit(repository: Path) -> None:
    assert current_revision(repository) == git(repository, "rev-parse", "HEAD")


@pytest.mark.parametrize("name", ["code.py", "new.py", "requirements.lock", "pyproject.toml"])
def test_changed_or_new_code_makes_it_dirty_also_from_a_subfolder(repository: Path, name: str) -> None:
    (repository / name).write_text("changed\n")
    folder = repository / "folder"
    folder.mkdir()
    assert current_revision(folder) == git(repository, "rev-parse", "HEAD") + "-dirty"


def test_a_result_file_does_not_make_it_dirty(repository: Path) -> None:
    (repository / "results.json").write_text("{}\n")
    assert not current_revision(repository).endswith("-dirty")


def test_before_the_first_commit_it_is_unknown(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert current_revision(tmp_path) == "unknown"


def test_the_machine_is_described_in_full_and_in_a_line() -> None:
    here = machine.describe()
    assert here["cpu"]
    assert here["cores"] >= 1
    assert here["memory"] > 2**20
    assert machine.one_line({**here, "cores": 1}).count("1 core,") == 1


def test_what_the_host_withholds_is_counted_up() -> None:
    before = machine.stolen()
    assert 0 <= before <= machine.stolen()
    if Path("/proc/stat").exists():
        steal = int(Path("/proc/stat").read_text().split()[8])
        assert before <= steal * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
