"""Manifests as bytes: a line of JSON, and a line with its checksum. Pure.

The checksum comes first when one is read: bytes that are not as they were written say nothing, not even their version.
That line is the same in all versions of the format. For any bytes at all `decode_manifest` gives a manifest or raises
SnapshotDamaged.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dataflow.recovery.manifest import (
    FORMAT,
    Encoded,
    Manifest,
    SavedFile,
    SavedOperator,
    SavedShards,
    SnapshotDamaged,
    SnapshotTooNew,
)

T = TypeVar("T")

_CHECKSUM = re.compile(rb"\nsha256 ([0-9a-f]{64})\n\Z")
_TRAILER = len("\nsha256 \n") + 64
_SHARDS, _WORDS = np.dtype("<i4"), np.dtype("<i8")
_LARGEST = (1 << 63) - 1
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")


def encode_manifest(manifest: Manifest) -> bytes:
    """A manifest as bytes."""
    plain = {
        "format": FORMAT,
        "dataflow": manifest.dataflow,
        "number": manifest.number,
        "incarnation": manifest.incarnation,
        "time": manifest.time,
        "final": manifest.final,
        "created": manifest.created,
        "workers": manifest.workers,
        "members": list(manifest.members),
        "graph": manifest.graph,
        "previous": manifest.previous,
        "origin": manifest.origin,
        "operators": {
            name: {"description": dict(operator.description), "shards": operator.shards}
            for name, operator in manifest.operators.items()
        },
        "files": [_of_file(file) for file in manifest.files],
        "shares": _of_encoded(manifest.shares),
        "tokens": _of_encoded(manifest.tokens),
    }
    body = json.dumps(plain, separators=(",", ":"), allow_nan=False).encode()
    return body + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


def decode_manifest(data: bytes, title: str = "the manifest") -> Manifest:
    """The manifest that was encoded. SnapshotDamaged if the bytes are none, SnapshotTooNew if they are of a later
    format."""
    found = _CHECKSUM.search(data[-_TRAILER:])
    if found is None:
        raise SnapshotDamaged(f"{title} is cut off or is none: its checksum is missing ({len(data)} bytes)")
    body = data[:-_TRAILER]
    if hashlib.sha256(body).hexdigest().encode() != found[1]:
        raise SnapshotDamaged(f"{title} is damaged: its checksum is wrong")
    try:
        plain = _mapping(json.loads(body))
        version = _number(plain, "format", least=1)
        if version > FORMAT:
            raise SnapshotTooNew(
                f"{title} has format {version}, and this version of the library reads formats up to {FORMAT}: it was "
                "written by a newer one, so use that"
            )
        return _to_manifest(plain)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise SnapshotDamaged(f"{title} makes no sense: {why}") from None


def _of_file(file: SavedFile) -> dict[str, object]:
    live = {operator: [_of_array(s.shards, _SHARDS), _of_array(s.words, _WORDS)] for operator, s in file.live.items()}
    return {
        "name": file.name,
        "size": file.size,
        "sha256": file.sha256,
        "number": file.number,
        "worker": file.worker,
        "words": file.words,
        "live": live,
    }


def _of_array(array: NDArray[np.int64], dtype: np.dtype[np.signedinteger]) -> str:
    narrow = array.astype(dtype)
    if not np.array_equal(narrow, array):
        raise OverflowError("the number of a shard has more than 32 bits")
    return base64.b64encode(narrow.tobytes()).decode()


def _of_encoded(encoded: Encoded) -> dict[str, dict[str, str]]:
    return {
        name: {str(worker): base64.b64encode(data).decode() for worker, data in by_worker.items()}
        for name, by_worker in encoded.items()
    }


# From plain data. ValueError, TypeError and KeyError mean that it is not what was written.


def _to_manifest(plain: Mapping[str, object]) -> Manifest:
    time = None if plain["time"] is None else _number(plain, "time", least=-_LARGEST)
    previous = None if plain["previous"] is None else _number(plain, "previous")
    manifest = Manifest(
        dataflow=_text(plain["dataflow"]),
        number=_number(plain, "number"),
        incarnation=_number(plain, "incarnation"),
        time=time,
        created=_seconds(plain["created"]),
        workers=_number(plain, "workers", least=1),
        final=_truth(plain["final"]),
        graph=_text(plain["graph"]),
        operators=_by_name(plain["operators"], _to_operator),
        files=tuple(_to_file(_mapping(file)) for file in _list(plain["files"])),
        shares=_by_name(plain["shares"], _to_encoded),
        tokens=_by_name(plain["tokens"], _to_encoded),
        previous=previous,
        origin=_text(plain["origin"]),
        format=_number(plain, "format"),
        members=_numbers(plain.get("members", [])),
    )
    for file in manifest.files:
        if not file.live.keys() <= manifest.operators.keys():
            raise ValueError(f"{file.name} has state of operators that are not named")
    if len({file.name for file in manifest.files}) < len(manifest.files):
        raise ValueError("a file is named twice")
    return manifest


def _numbers(plain: object) -> tuple[int, ...]:
    return tuple(_number({"member": each}, "member") for each in _list(plain))


def _to_operator(plain: object) -> SavedOperator:
    mapping = _mapping(plain)
    return SavedOperator(_by_name(mapping["description"], _text), _number(mapping, "shards", least=1))


def _to_file(plain: Mapping[str, object]) -> SavedFile:
    name, sha256 = _text(plain["name"]), _text(plain["sha256"])
    if not _FILE.fullmatch(name):
        raise ValueError("a file has a name that no file has")  # such as one with a slash, which is elsewhere
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise ValueError(f"the checksum of {name} is none")
    file = SavedFile(
        name,
        _number(plain, "size"),
        sha256,
        _number(plain, "number"),
        _number(plain, "worker"),
        _number(plain, "words"),
        _by_name(plain["live"], _to_shards),
    )
    if file.live_words > file.words or 8 * file.words > file.size:
        raise ValueError(f"{name} has more state than bytes")
    return file


def _to_shards(plain: object) -> SavedShards:
    one, two = _list(plain)
    shards, words = _to_array(one, _SHARDS), _to_array(two, _WORDS)
    if len(shards) != len(words) or np.any(np.diff(shards) <= 0) or np.any((words <= 0) | (words > 1 << 40)):
        raise ValueError("a list of shards is in disorder")
    return SavedShards(shards, words)


def _to_array(plain: object, dtype: np.dtype[np.signedinteger]) -> NDArray[np.int64]:
    return np.frombuffer(_bytes(plain), dtype).astype(np.int64)


def _to_encoded(plain: object) -> dict[int, bytes]:
    found = {}
    for worker, data in _mapping(plain).items():
        if not re.fullmatch("[0-9]{1,9}", worker):
            raise ValueError("a worker's number is none")
        found[int(worker)] = _bytes(data)
    return found


def _by_name(plain: object, convert: Callable[[object], T]) -> dict[str, T]:
    return {name: convert(value) for name, value in _mapping(plain).items()}


def _mapping(plain: object) -> dict[str, object]:
    if type(plain) is not dict:
        raise ValueError(f"a {type(plain).__name__} stands where names and values belong")
    return plain


def _list(plain: object) -> list[object]:
    if type(plain) is not list:
        raise ValueError(f"a {type(plain).__name__} stands where a list belongs")
    return plain


def _text(plain: object) -> str:
    if type(plain) is not str:
        raise ValueError(f"a {type(plain).__name__} stands where text belongs")
    return plain


def _bytes(plain: object) -> bytes:
    return base64.b64decode(_text(plain), validate=True)


def _truth(plain: object) -> bool:
    if type(plain) is not bool:
        raise ValueError(f"a {type(plain).__name__} stands where true or false belongs")
    return plain


def _seconds(plain: object) -> float:
    if type(plain) not in (int, float):
        raise ValueError(f"a {type(plain).__name__} stands where seconds belong")
    seconds = float(plain)  # type: ignore[arg-type]  # checked on the line above
    if not abs(seconds) < 1e15:
        raise ValueError("a moment that no clock shows")
    return seconds


def _number(plain: Mapping[str, object], name: str, least: int = 0) -> int:
    value = plain[name]
    if type(value) is not int or not least <= value <= _LARGEST:
        raise ValueError(f"{name!r} is not a number as it should be")
    return value
