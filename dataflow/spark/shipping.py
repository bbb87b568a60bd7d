"""Which packages go to the executors: the engine, and whatever of the program is not installed.

They travel with the function that Spark runs, and not by `addPyFile` or `addArtifacts`: those stay in the session for
every later job, cannot be taken back, and put one version in front of another. What is installed here (site-packages)
must be installed there: much of it is compiled for a machine.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import sys
import sysconfig
import types
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dataflow.errors import NotAsGuest

MOST = 64 << 20  # bytes of packages: more than that is data, or an environment
_OURS = ("dataflow", "megaphone", "planners", "nexmark")
_LEFT = ("__pycache__",)
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same files make the same archive, whenever it is made


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages on their way."""

    archive: bytes
    digest: str
    names: tuple[str, ...]


def pack(further: Iterable[str] = ()) -> Packages:
    """The engine, what this process has imported from beside the installed packages, and `further` ones by name."""
    names = {"dataflow", *_loaded()}
    for name in further:
        if not name.isidentifier():
            raise NotAsGuest(f"packages= names packages or modules, such as 'helpers', not {name!r}")
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise NotAsGuest(f"packages= names {name!r}, which cannot be imported here: {error}") from error
        names.add(name)
    files = sorted((inside, path) for name in names for inside, path in _files_of(sys.modules[name]))
    size = sum(path.stat().st_size for _, path in files)
    if size > MOST:
        largest = max(files, key=lambda each: each[1].stat().st_size)[1]
        raise NotAsGuest(
            f"the packages {', '.join(sorted(names))} have {size >> 20} MB, and at most {MOST >> 20} MB may go along; "
            f"the largest file is {largest}. Keep data elsewhere, or install the packages there"
        )
    archive = _zipped(files)
    return Packages(archive, hashlib.blake2b(archive, digest_size=12).hexdigest(), tuple(sorted(names)))


def _zipped(files: Iterable[tuple[str, Path]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for inside, path in files:
            archive.writestr(zipfile.ZipInfo(inside, _LONG_AGO), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _loaded() -> Iterator[str]:
    """The top packages and modules in use here that others cannot be expected to have."""
    installed = _installed()
    for name in {name.partition(".")[0] for name in list(sys.modules)} - {"__main__"}:
        module = sys.modules.get(name)
        place = _place(module) if module is not None else None
        if place is not None and (name in _OURS or not any(place.is_relative_to(each) for each in installed)):
            yield name


def _installed() -> list[Path]:
    """Where the interpreter's own and installed packages lie."""
    paths = sysconfig.get_paths()
    places = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places.update(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages"))
    return [Path(each).resolve() for each in places]


def _place(module: types.ModuleType) -> Path | None:
    """The file of a module, or the folder of a package; None for what is neither."""
    origin = getattr(module, "__file__", None)
    if origin is not None:
        path = Path(origin).resolve()
        return path.parent if path.name.startswith("__init__.") else path
    folders = list(getattr(module, "__path__", []))
    return Path(folders[0]).resolve() if folders else None


def _files_of(module: types.ModuleType) -> Iterator[tuple[str, Path]]:
    """Names in the archive, and the files."""
    place = _place(module)
    if place is None or not place.exists():
        raise NotAsGuest(f"{module.__name__} cannot be sent to the executors: it has no file. Install it there")
    if place.is_file():
        yield place.name, place
        return
    for folder, inner, names in os.walk(place):
        inner[:] = sorted(each for each in inner if each not in _LEFT and not each.startswith("."))
        for name in names:
            path = Path(folder, name)
            if not name.startswith(".") and path.suffix != ".pyc" and path.is_file():
                yield str(Path(module.__name__, path.relative_to(place))), path
