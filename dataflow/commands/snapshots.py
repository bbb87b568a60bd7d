"""`python -m dataflow snapshots WHERE`: what is kept there, whether it is whole, and what is in it."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import trio

from dataflow.commands.tables import duration_text, make_table
from dataflow.errors import DataflowError
from dataflow.recovery.catalogue import (
    delete_savepoint,
    list_dataflows,
    list_numbers,
    list_savepoints,
    name_savepoint,
    read_manifest,
)
from dataflow.recovery.manifest import Manifest, SavedFile, SavedShards, SnapshotDamaged
from dataflow.recovery.opening import open_storage
from dataflow.recovery.part_files import fetch_part, read_directory
from dataflow.recovery.storage import NotThere, Storage
from dataflow.text import size_text

_EPILOG = """\
  python -m dataflow snapshots state/                                  what is there
  python -m dataflow snapshots state/ --verify                         reads every file and its checksum
  python -m dataflow snapshots state/ --inspect totals                 the state of an operator, in the newest one
  python -m dataflow snapshots state/ --inspect totals --snapshot 12   in another, by number or savepoint
  python -m dataflow snapshots state/ --save NAME                      keeps the newest, until --forget NAME

exit status: 0 when all is well, 1 when something is damaged or missing, 2 for a wrong command
"""


class _Trouble(Exception):
    """Something that the command cannot do; the message says what."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "snapshots",
        help="list snapshots, verify them, show what is in them",
        description="Lists the snapshots that a program with recovery has made.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=_command)
    parser.add_argument("where", metavar="WHERE", help="a folder, or s3://bucket/prefix")
    parser.add_argument("--dataflow", metavar="NAME", help="of this dataflow only")
    parser.add_argument("--snapshot", metavar="N", help="this one only: a number, or the name of a savepoint")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--verify", action="store_true", help="read every file, and verify every checksum")
    what.add_argument("--inspect", metavar="OPERATOR", help="print the state of an operator as a table")
    what.add_argument("--save", metavar="NAME", help="keep a snapshot as a savepoint")
    what.add_argument("--forget", metavar="NAME", help="delete a savepoint")
    parser.add_argument("--limit", type=int, default=100, metavar="ROWS", help="rows to print (default: 100; 0: all)")
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="for --inspect: where classes of the program's own are defined, if its state has such objects",
    )


def _command(options: argparse.Namespace) -> int:
    try:
        return trio.run(_run, options)
    except _Trouble as error:
        print(f"dataflow: {error}", file=sys.stderr)
        return 2
    except (DataflowError, ValueError) as error:
        print(f"dataflow: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python would complain once more when it flushes at its end
        return 1


async def _run(options: argparse.Namespace) -> int:
    try:
        storage = open_storage(options.where)
    except ValueError as error:
        raise _Trouble(str(error)) from None
    dataflows = await list_dataflows(storage)
    if not dataflows:
        raise _Trouble(f"there are no snapshots in {storage.title}")
    if options.dataflow is not None:
        if options.dataflow not in dataflows:
            raise _Trouble(
                f"there is no dataflow {options.dataflow!r} in {storage.title}; there are: {_list(dataflows)}"
            )
        dataflows = [options.dataflow]
    if options.forget is not None:
        return await _forget(storage, dataflows, options.forget)
    listings = [await _look(storage, dataflow, options.snapshot) for dataflow in dataflows]
    if options.snapshot is not None and not any(listing.entries for listing in listings):
        raise _Trouble(f"there is no snapshot {options.snapshot!r} in {storage.title}")
    if options.save is not None:
        return await _save(storage, listings, options.save)
    if options.inspect is not None:
        return await _inspect(storage, listings, options)
    well = [await _show(storage, listing, options.verify) for listing in listings]
    return 0 if all(well) else 1


@dataclass(frozen=True)
class _Entry:
    """A snapshot or savepoint, or why it cannot be read."""

    label: str
    manifest: Manifest | None
    trouble: str = ""


@dataclass(frozen=True)
class _Listing:
    """What there is of a dataflow, the newest first, then savepoints."""

    dataflow: str
    entries: list[_Entry]

    @property
    def newest(self) -> Manifest | None:
        """The newest that has something to go on from and can be read."""
        found = (entry.manifest for entry in self.entries if entry.manifest is not None)
        return next((manifest for manifest in found if manifest.time is not None), None)


async def _look(storage: Storage, dataflow: str, only: str | None) -> _Listing:
    which: list[int | str] = [
        *reversed(await list_numbers(storage, dataflow)),
        *await list_savepoints(storage, dataflow),
    ]
    entries = []
    for each in which:
        if only is not None and str(each) != only:
            continue
        try:
            entries.append(_Entry(str(each), await read_manifest(storage, dataflow, each)))
        except NotThere:
            continue  # deleted since
        except SnapshotDamaged as error:
            entries.append(_Entry(str(each), None, str(error)))
    return _Listing(dataflow, entries)


# _Listing and verifying


async def _show(storage: Storage, listing: _Listing, verify: bool) -> bool:
    """Prints a listing; whether all is well."""
    print(f"{listing.dataflow} in {storage.title}")
    verdicts = [""] * len(listing.entries)
    if verify:
        verifier = _Verifier(storage, listing.dataflow)
        verdicts = [
            "" if entry.manifest is None else await verifier.verdict(entry.manifest) for entry in listing.entries
        ]
    heads = ["snapshot", "time", "age", "size", "workers", "what is in it"]
    rows = [_row(entry, verdict) for entry, verdict in zip(listing.entries, verdicts, strict=True)]
    print("\n".join(make_table(heads, rows, right=5)))
    troubles = [entry.trouble for entry in listing.entries if entry.trouble]
    troubles += [
        f"snapshot {e.label}: {v}" for e, v in zip(listing.entries, verdicts, strict=True) if v not in ("", OK)
    ]
    for trouble in troubles:
        print(f"damaged: {trouble}")
    return not troubles


OK = "verified"


class _Verifier:
    """Reads every file once, however many snapshots name it."""

    def __init__(self, storage: Storage, dataflow: str) -> None:
        self._storage = storage
        self._dataflow = dataflow
        self._read: dict[str, Mapping[str, SavedShards] | str] = {}  # by file: its directory, or what is wrong with it

    async def verdict(self, manifest: Manifest) -> str:
        """OK, or what is wrong."""
        wrong = [await self._check(file) for file in manifest.files]
        return "; ".join(filter(None, wrong)) or OK

    async def _check(self, file: SavedFile) -> str:
        if file.name not in self._read:
            try:
                data = await fetch_part(self._storage, self._dataflow, file)
                self._read[file.name] = read_directory(data, file.name)
            except SnapshotDamaged as error:
                self._read[file.name] = str(error)
        found = self._read[file.name]
        if isinstance(found, str):
            return found
        for operator, saved in file.live.items():
            there = found[operator].as_dict() if operator in found else {}
            if not saved.as_dict().items() <= there.items():
                return f"{file.name} has other state of {operator!r} than the manifest says"
        return ""


def _row(entry: _Entry, verdict: str) -> list[str]:
    manifest = entry.manifest
    if manifest is None:
        return [entry.label, "", "", "", "", "cannot be read"]
    when = "-" if manifest.time is None else str(manifest.time)
    about = "; ".join(filter(None, [OK if verdict == OK else "DAMAGED" if verdict else "", *_contents(manifest)]))
    return [
        entry.label,
        when,
        duration_text(max(0.0, time.time() - manifest.created)),
        size_text(manifest.size),
        str(manifest.workers),
        about,
    ]


def _contents(manifest: Manifest) -> Iterator[str]:
    if manifest.is_claim:
        yield "a run began here" if manifest.time is not None else "a run began here, from the beginning"
    if manifest.final:
        yield "the end of a run"
    for name, operator in manifest.operators.items():
        saved = [shards for _, shards in manifest.where(name)]
        words = sum(int(shards.words.sum()) for shards in saved)
        count = len({shard for shards in saved for shard in shards.shards.tolist() if shard >= 0})
        yield f"{name}: {count} of {operator.shards} shards, {size_text(8 * words)}"
    others = [name for name in manifest.shares if name not in manifest.operators]
    if others:
        yield f"positions and values: {_list(others)}"
    if manifest.tokens:
        yield f"output: {_list(manifest.tokens)}"
    if manifest.origin:
        yield f"from the savepoint {manifest.origin}"


# Savepoints


async def _save(storage: Storage, listings: Sequence[_Listing], name: str) -> int:
    saved = 0
    for listing in listings:
        if listing.newest is not None:
            await name_savepoint(storage, listing.newest, name)
            print(f"{listing.dataflow}: snapshot {listing.newest.number}, at {listing.newest.time}, is kept as {name}")
            saved += 1
    if not saved:
        raise _Trouble(f"there is no snapshot in {storage.title} that could be kept")
    return 0


async def _forget(storage: Storage, dataflows: Sequence[str], name: str) -> int:
    having = [dataflow for dataflow in dataflows if name in await list_savepoints(storage, dataflow)]
    if not having:
        raise _Trouble(f"there is no savepoint {name!r} in {storage.title}")
    for dataflow in having:
        await delete_savepoint(storage, dataflow, name)
        print(f"{dataflow}: the savepoint {name} is deleted; its files go with the next snapshot that is made")
    return 0


# The state of an operator


async def _inspect(storage: Storage, listings: Sequence[_Listing], options: argparse.Namespace) -> int:
    sys.path.insert(0, os.getcwd())
    for module in options.modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise _Trouble(f"--import {module}: {error}") from None
    having = [listing for listing in listings if listing.newest and options.inspect in listing.newest.operators]
    if not having:
        known = {name for listing in listings if listing.newest for name in listing.newest.operators}
        raise _Trouble(f"no snapshot has an operator {options.inspect!r}; there are: {_list(sorted(known)) or 'none'}")
    from dataflow.commands.inspecting import inspect_operator  # which loads stores and compilers

    for listing in having:
        assert listing.newest is not None
        print(f"{options.inspect} in {listing.dataflow}, snapshot {listing.newest.number} at {listing.newest.time}")
        for line in await inspect_operator(storage, listing.newest, options.inspect, options.limit):
            print(line)
    return 0


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
