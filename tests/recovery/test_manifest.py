"""Manifests: what is live, bytes and back, and bytes that are none."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dataflow.comm import codec
from dataflow.recovery.format import decode_manifest, encode_manifest
from dataflow.recovery.manifest import (
    Manifest,
    SavedFile,
    SavedOperator,
    SnapshotDamaged,
    SnapshotTooNew,
    follow,
    merge_files,
    stale_shards,
)
from tests.recovery.samples import sample_manifest, saved_file

FIXTURES = Path(__file__).parent / "formats"


def sealed(plain: object) -> bytes:
    """JSON with a right checksum, whatever is in it."""
    body = json.dumps(plain).encode()
    return body + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


def live_of(files: tuple[SavedFile, ...]) -> dict[int, dict[str, dict[int, int]]]:
    return {file.number: {operator: saved.as_dict() for operator, saved in file.live.items()} for file in files}


def test_a_manifest_comes_back_as_it_was() -> None:
    manifest = sample_manifest()
    data = encode_manifest(manifest)
    back = decode_manifest(data)
    assert encode_manifest(back) == data
    assert back.share_values("lines") == {0: {"a.txt": 17}, 1: (1, "x")}
    assert back.token_values("sqlite") == {0: ["out", 12]}
    assert back.token_values("nobody") == {}
    assert live_of(back.files) == {6: {"totals": {0: 3, 5: 4}}, 7: {"totals": {-1: 2, 3: 1}, "λ": {0: 9}}}
    assert replace(back, files=()) == replace(manifest, files=())


def test_a_manifest_of_format_1_can_be_read() -> None:
    """The file was written by the first version of the format, and stays as it is: never write it anew."""
    manifest = decode_manifest((FIXTURES / "manifest-1").read_bytes())
    assert manifest.format == 1
    assert replace(manifest, files=()) == replace(sample_manifest(), files=())
    assert live_of(manifest.files) == live_of(sample_manifest().files)


def test_a_later_format_is_refused_and_says_so() -> None:
    with pytest.raises(SnapshotTooNew, match="has format 99, and this version of the library reads formats up to 1"):
        decode_manifest(sealed({"format": 99, "whatever": "comes"}))


def test_a_share_of_a_class_that_is_not_known_here_is_told() -> None:
    manifest = replace(sample_manifest(), shares={"main": {1: b"\xc1"}})
    with pytest.raises(SnapshotDamaged, match="the share of 'main' on worker 1 in snapshot 7 cannot be read"):
        manifest.share_values("main")
    assert encode_manifest(decode_manifest(encode_manifest(manifest))) == encode_manifest(manifest)


def test_every_cut_and_every_altered_byte_is_found() -> None:
    data = encode_manifest(sample_manifest())
    for length in range(len(data)):
        with pytest.raises(SnapshotDamaged):
            decode_manifest(data[:length])
    chance = random.Random(1)
    for at in range(len(data)):
        altered = bytearray(data)
        altered[at] ^= 1 << chance.randrange(8)
        with pytest.raises(SnapshotDamaged):
            decode_manifest(bytes(altered))
    for _ in range(200):
        with pytest.raises(SnapshotDamaged):
            decode_manifest(chance.randbytes(chance.randrange(300)))


ODD = [None, True, False, 0, -1, 1, 1.5, 1e400, 10**30, "", "x", "AAAA", "../x", [], [1], {}, {"x": 1}, [[]], "\ud800"]


def places(plain: object, before: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Where there is something in a value of JSON."""
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    return [before, *(place for key, value in inner for place in places(value, (*before, key)))]


def test_whatever_has_a_right_checksum_is_a_manifest_or_refused() -> None:
    """Each place gets each odd value, or is removed. What is accepted must mean something: it can be written again."""
    text = encode_manifest(sample_manifest()).partition(b"\n")[0]
    accepted = refused = 0
    for *path, last in filter(None, places(json.loads(text))):
        for odd in [..., *ODD]:
            plain = holder = json.loads(text)
            for key in path:
                holder = holder[key]
            if odd is ...:
                del holder[last]
            else:
                holder[last] = odd
            try:
                manifest = decode_manifest(sealed(plain))
            except SnapshotDamaged:
                refused += 1
            else:
                accepted += 1
                encode_manifest(manifest)
    assert accepted > 50 and refused > 500
    deep = b"[" * 100_000
    for body in (deep, b"NaN", b'{"format":1}', b"\xff", b"1" * 10_000):
        with pytest.raises(SnapshotDamaged):
            decode_manifest(body + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n")


def test_names_of_files_that_lead_elsewhere_are_refused() -> None:
    plain = json.loads(encode_manifest(sample_manifest()).partition(b"\n")[0])
    for name in ("../../secret", "/etc/passwd", "a/b", ".", "..", ""):
        plain["files"][0]["name"] = name
        with pytest.raises(SnapshotDamaged, match="a file has a name that no file has"):
            decode_manifest(sealed(plain))


def test_the_newest_file_wins() -> None:
    one = saved_file(1, {"a": {0: 5, 1: 5, 2: 5}, "b": {0: 1}})
    two = saved_file(2, {"a": {1: 7, 2: 0}})
    merged = merge_files([one], [two])
    assert live_of(merged) == {1: {"a": {0: 5}, "b": {0: 1}}, 2: {"a": {1: 7}}}
    assert live_of(merge_files(merged, [saved_file(3, {"a": {0: 0, 1: 0}, "b": {0: 2}})])) == {3: {"b": {0: 2}}}
    assert live_of(merge_files(merged, [], {"b"})) == {1: {"b": {0: 1}}}


def test_a_shard_in_several_files_of_one_snapshot_is_live_in_all() -> None:
    before = [saved_file(1, {"a": {0: 5, 1: 2}})]
    merged = merge_files(before, [saved_file(2, {"a": {0: 9}}), replace(saved_file(2, {"a": {0: 4}}), name="other")])
    assert [(file.number, file.live["a"].as_dict()) for file in merged] == [(1, {1: 2}), (2, {0: 9}), (2, {0: 4})]


def test_merging_is_what_a_dictionary_says() -> None:
    """Against the obvious program: by shard, where it was last written."""
    for seed in range(60):
        chance = random.Random(seed)
        files: tuple[SavedFile, ...] = ()
        expected: dict[tuple[str, int], tuple[int, int]] = {}
        for number in range(1, 12):
            written: dict[str, dict[int, int]] = {}
            for _ in range(chance.randrange(8)):
                operator, shard, length = chance.choice("abc"), chance.randrange(6), chance.choice([0, 1, 2, 30])
                written.setdefault(operator, {})[shard] = length
                expected.pop((operator, shard), None)
                if length:
                    expected[operator, shard] = (number, length)
            files = merge_files(files, [saved_file(number, written)] if written else [])
            found = {
                (operator, shard): (file.number, length)
                for file in files
                for operator, saved in file.live.items()
                for shard, length in saved.as_dict().items()
            }
            assert found == expected, seed
            assert all(file.live for file in files)


def test_the_next_manifest_follows() -> None:
    before = replace(sample_manifest(), number=9)
    operators = {"totals": SavedOperator({"store": "rows"}, 16)}
    after = follow(
        before, time=2000, created=1.0, workers=3, graph="g", operators=operators,
        files=[saved_file(10, {"totals": {0: 1, 3: 0}})], shares={"lines": {2: codec.encode(1)}}, tokens={}, final=True,
    )  # fmt: skip
    assert (after.number, after.previous, after.incarnation, after.origin) == (10, 9, 5, "before-the-change")
    assert (after.time, after.workers, after.final, after.token_values("sqlite")) == (2000, 3, True, {})
    assert live_of(after.files) == {6: {"totals": {5: 4}}, 7: {"totals": {-1: 2}}, 10: {"totals": {0: 1}}}
    decode_manifest(encode_manifest(after))


def test_files_that_are_mostly_dead_are_written_again() -> None:
    files = (
        saved_file(1, {"a": {0: 30, 1: 3}}, total=100),
        saved_file(2, {"a": {2: 40}, "b": {0: 1}}, total=100),
        saved_file(3, {"a": {3: 1}, "b": {5: 1, 7: 1}}, total=10),
    )
    manifest = replace(sample_manifest(), files=files)
    found = {operator: shards.tolist() for operator, shards in stale_shards(manifest).items()}
    assert found == {"a": [0, 1, 3], "b": [5, 7]}
    assert stale_shards(replace(manifest, files=files[1:2])) == {}
    many = tuple(saved_file(number, {"a": {number: 10 + number}}) for number in range(5))
    assert {k: v.tolist() for k, v in stale_shards(replace(manifest, files=many), most=3).items()} == {"a": [0, 1]}


def test_a_small_file_is_not_stale_because_of_what_surrounds_its_words() -> None:
    assert stale_shards(Manifest("d", 1, 1, 0, 0.0, 1, files=(saved_file(1, {"a": {0: 1}}),))) == {}


def test_2_to_the_20_shards_are_no_burden() -> None:
    """Counted in bytes: a manifest takes 16 bytes for a shard."""
    shards = np.arange(1 << 20)
    file = saved_file(1, {"a": {0: 1}}, total=1 << 21)
    file.live["a"].__class__(shards, shards + 1)  # arrays, no Python object for each
    live = {"a": type(file.live["a"])(shards, np.full(1 << 20, 2))}
    whole = replace(file, live=live, size=1 << 25)
    manifest = Manifest("d", 1, 1, 0, 0.0, 1, operators={"a": SavedOperator({}, 1 << 20)}, files=(whole,))
    data = encode_manifest(manifest)
    assert len(data) < 17 << 20
    assert len(decode_manifest(data).files[0].live["a"]) == 1 << 20
