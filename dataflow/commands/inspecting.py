"""The state of an operator in a snapshot, as a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from dataflow.commands.tables import make_table
from dataflow.recovery.manifest import Manifest
from dataflow.recovery.part_files import fetch_part, live_pieces
from dataflow.recovery.storage import Storage
from dataflow.state.reading import SavedState, pieces_apart
from dataflow.state.values import Key, State

_WIDEST = 60  # characters of a value


async def inspect_operator(storage: Storage, manifest: Manifest, operator: str, limit: int) -> list[str]:
    """The lines of a table: by key its state, then the records that were put off. At most `limit` rows of each, unless
    that is 0. SnapshotDamaged if a file is not as it was, ValueError if the state cannot be read."""
    saved = SavedState(manifest.operators[operator].description)
    for file, _ in manifest.where(operator):
        for name, _, words in live_pieces(file, await fetch_part(storage, manifest.dataflow, file)):
            if name == operator:
                saved.put(words)
    for share in manifest.share_values(operator).values():
        for words in pieces_apart(share):
            saved.put(words)
    apart, apart_pending = saved.apart()
    entries: list[tuple[str, Key, State]] = []
    pending = [("pinned", time, record) for time, record in apart_pending]
    for view in saved.views():
        entries += [(str(view.bin), key, state) for key, state in view.entries.items()]
        pending += [(str(view.bin), time, record) for time, record in view.pending]
    entries += [("pinned", key, state) for key, state in apart.items()]
    lines = [*_entries_table(entries, limit)]
    if pending:
        pending.sort(key=lambda each: each[1])
        rows = [[bin, str(time), _text(record)] for bin, time, record in _some(pending, limit)]
        lines += ["", f"{len(pending)} records that were put off", *make_table(["shard", "until", "record"], rows)]
        lines += _more(len(pending), limit)
    return lines


def _entries_table(entries: Sequence[tuple[str, Key, State]], limit: int) -> Iterator[str]:
    fields = _fields([state for _, _, state in entries])
    heads = ["shard", "key", *(fields or ["state"])]
    rows = [
        [bin, _text(key), *([_text(state[field]) for field in fields] if fields else [_text(state)])]
        for bin, key, state in _some(entries, limit)
    ]
    yield f"{len(entries)} keys"
    yield from make_table(heads, rows)
    yield from _more(len(entries), limit)


def _fields(states: Sequence[State]) -> list[str]:
    """The fields of states in columns, which are mappings of the same names; none for other states."""
    first = states[0] if states else None
    if not isinstance(first, Mapping) or not all(type(name) is str for name in first):
        return []
    return [*first] if all(isinstance(state, Mapping) and state.keys() == first.keys() for state in states) else []


def _some(rows: Sequence[tuple[str, Key, State]], limit: int) -> list[tuple[str, Key, State]]:
    return list(itertools.islice(rows, limit or None))


def _more(count: int, limit: int) -> list[str]:
    return [f"... and {count - limit} more (--limit 0 shows all)"] if 0 < limit < count else []


def _text(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else "?" for c in text)  # a terminal may obey what is not
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
