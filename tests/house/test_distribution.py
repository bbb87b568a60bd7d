"""What is distributed: sdist and wheel build, hold all of the packages and no test, and install where nothing is."""

from __future__ import annotations

import email
import email.message
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.house.tree import PACKAGES as TREE
from tests.house.tree import ROOT, House, make_house, this_house

PACKAGES = ("dataflow", "megaphone", "planners", "nexmark")
SPARK = ("planners.spark", "nexmark.answers.spark_oracle")  # need the extra `spark`; nothing else loads them at once
PAGE = ("dataflow.page.app", "dataflow.page.serving")  # need the extra `page`
EXTRAS = (*SPARK, *PAGE)
OTHERS = ("tests", "bench", "examples", "docs", "stubs")  # of the repository, and of no wheel

SDIST = """
import sys
from setuptools import build_meta
print(build_meta.build_sdist(sys.argv[1]))
"""
WHEEL = """
import sys
from setuptools import build_meta
print(build_meta.build_wheel(sys.argv[1]))
"""
PROGRAM = """
import dataflow, megaphone, nexmark, planners, sys

async def main(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        seen = []
        stream.map(lambda number: number * 2).inspect(lambda time, number: seen.append(number))
    numbers.send([1, 2, 3])
    numbers.close()
    return seen

if __name__ == "__main__":
    for package in (dataflow, megaphone, nexmark, planners):
        assert package.__file__.startswith(sys.argv[1]), package.__file__
    (results,) = dataflow.execute(main, workers=1)
    print(results)
"""


class Built(NamedTuple):
    """The files that were built."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist of what is here, and the wheel that is built from the sdist alone, as an installer would."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    source.mkdir()
    shutil.copytree(ROOT, source, dirs_exist_ok=True, ignore=_not_of_the_project)
    sdist = folder / _run(source, SDIST, str(folder))
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return Built(sdist, folder / _run(unpacked, WHEEL, str(folder)))


def _not_of_the_project(folder: str, names: list[str]) -> set[str]:
    """What lies about in a working folder, and what was built there before. (`dataflow.build` is a room.)"""
    built = ("build", "dist", "figures") if Path(folder) == ROOT else ()
    return {name for name in names if name.startswith(".") or name in ("__pycache__", *built) or "egg-info" in name}


def _run(folder: Path, program: str, *arguments: str, path: str | None = None) -> str:
    """The last line that a program prints. It sees neither this folder nor the editable install, unless `path` does."""
    environment = {**os.environ, "PYTHONPATH": path or "", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def modules() -> set[str]:
    """Every file that an installed package has: its modules, its mark of being typed, what the page is made of."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    kept = [path for path in files if path.suffix == ".py" or path.name == "py.typed" or path.parent.name == "static"]
    return {path.relative_to(ROOT).as_posix() for path in kept}


def test_the_wheel_holds_all_of_the_packages_and_nothing_else(built: Built) -> None:
    names = set(zipfile.ZipFile(built.wheel).namelist())
    inside = {name for name in names if ".dist-info/" not in name}
    assert inside == modules()
    assert {f"{package}/py.typed" for package in PACKAGES} <= inside
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_sdist_holds_what_a_wheel_is_made_of_and_no_test(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert modules() | {"README.md", "LICENSE", "pyproject.toml"} <= names
    assert not {name for name in names if name.split("/")[0] in OTHERS}


def test_the_wheel_installs_into_an_empty_folder_and_runs(built: Built, tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    elsewhere.mkdir()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    options = ["--no-deps", "--no-index", "--no-compile", "--target", str(target)]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}  # pip warns of itself
    subprocess.run([*pip, *options, str(built.wheel)], env=own, check=True, timeout=120)
    (elsewhere / "program.py").write_text(PROGRAM, encoding="utf-8")
    # -S -P: neither the editable install of this folder nor the current one; other packages are on the path by name.
    path = os.pathsep.join([str(target), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    done = subprocess.run(
        [sys.executable, "-S", "-P", "program.py", str(target)],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "[2, 4, 6]"


def undeclared(house: House, declared: set[str]) -> list[str]:
    """Packages of others that a module imports when it is loaded, and that an installation would not bring along."""
    return [
        f"{each.importer}:{each.line} imports {each.imported}"
        for each in house.imports
        if each.where == "module" and each.imported.partition(".")[0] not in declared
    ]


def test_an_empty_environment_gets_all_that_is_imported(built: Built) -> None:
    needed = _metadata(built.wheel).get_all("Requires-Dist", [])
    named = {match[0] for need in needed if "extra ==" not in need and (match := re.match(r"[\w-]+", need))}
    house = this_house()
    known = {*named, *TREE, *sys.stdlib_module_names, "llvmlite"}  # which is a part of numba
    assert not [line for line in undeclared(house, known) if not line.startswith(("bench.", *EXTRAS))]
    loading = [each for each in house.imports if each.where == "module" and each.imported.startswith(EXTRAS)]
    assert all(each.importer.startswith((*EXTRAS, "bench.")) for each in loading)


def test_what_is_not_declared_is_found(tmp_path: Path) -> None:
    house = make_house(tmp_path, {"one/a.py": "import sys\nimport numpy.typing\ndef f():\n    import pandas\n"})
    assert undeclared(house, {"sys", "numpy"}) == []
    assert undeclared(house, {"sys"}) == ["one.a:2 imports numpy.typing"]


def test_the_readme_is_the_long_description(built: Built) -> None:
    about = _metadata(built.wheel)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert about["Name"] == "megaphone-dataflow"
    assert about["License-Expression"] == "Apache-2.0"
    assert about["Description-Content-Type"] == "text/markdown"
    assert about.get_payload() == text
    assert problems_in(text) == []


def _metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def problems_in(markdown: str) -> list[str]:
    """Why a page of Markdown would not be shown as it is meant: a block of code that never ends, no title."""
    problems = [] if markdown.startswith("# ") else ["does not start with a title"]
    fences = [line for line in markdown.splitlines() if re.match(r"\s*```", line)]
    opened = fences[::2]
    closed = fences[1::2]
    if len(opened) != len(closed) or any(line.strip() != "```" for line in closed):
        problems.append("has a block of code that does not end")
    return problems


def test_pages_that_would_not_show_are_found() -> None:
    assert problems_in("# A\n```python\nx\n```\n") == []
    assert problems_in("A\n```python\nx\n") == ["does not start with a title", "has a block of code that does not end"]
    assert problems_in("# A\n```\nx\n```python\ny\n```\n```\n") == ["has a block of code that does not end"]


def test_a_module_that_is_left_out_is_found(tmp_path: Path) -> None:
    """A folder without `__init__.py` is no package to setuptools, and would be missing after an installation."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "nexmark", source / "nexmark", ignore=_not_of_the_project)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "nexmark" / "runs" / "__init__.py").unlink()
    wheel = tmp_path / _run(source, WHEEL, str(tmp_path))
    inside = set(zipfile.ZipFile(wheel).namelist())
    missing = {name for name in modules() - inside if name.startswith("nexmark/")}
    assert "nexmark/runs/running.py" in missing and "nexmark/events/config.py" not in missing
