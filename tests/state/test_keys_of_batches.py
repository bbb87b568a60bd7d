"""Functions of batches: a table knows keys by words of 64 bits, so what a word does not tell apart is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.columns.column import Array
from dataflow.columns.pact import key_words
from dataflow.state import native
from dataflow.testing import simulate


def totals(time: Any, batch: Any, state: Any, notificator: Any) -> Any:
    """Adds up by `other`, whatever the operator's key is."""
    if not len(batch):
        return None
    rows = state.rows(key_words(batch["other"]))
    np.add.at(state["total"], rows, batch["v"])
    return {"other": batch["other"], "total": state["total"][rows]}


def run(migratable: bool, *batches: Any) -> list[Any]:
    out: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, updates = scope.input()
            handle, stream = scope.input()
            options: dict[str, Any] = {"key": "k", "fold": totals, "state": {"total": "i8"}}
            made = megaphone.unary(updates, stream, **options) if migratable else native.unary(stream, **options)
            made.inspect_batch(lambda time, batch: out.extend(batch.rows()))
        control.close()
        for time, batch in enumerate(batches):
            handle.send({"v": np.ones(len(batch["k"]), "i8"), **batch}, at=time)

    simulate(main, workers=1)
    return out


@pytest.mark.parametrize("migratable", [False, True])
@pytest.mark.parametrize(
    ("keys", "holds"), [(["a", "b"], "string"), ([0.5, 1.5], "float64"), ([b"a", b"b"], "binary")], ids=str
)
def test_keys_that_would_be_hashed_are_refused(keys: Any, holds: str, migratable: bool) -> None:
    """Two strings may have the same hash, and would share their state."""
    says = f"column 'k' cannot be a key: it holds {holds}, and keys of columns are integers, booleans or dates"
    with pytest.raises(TypeError, match=says):
        run(migratable, {"k": keys, "other": np.arange(2)})
    with pytest.raises(TypeError, match=says.replace("'k'", "'key'")):
        run(migratable, {"k": np.arange(2), "other": keys})


@pytest.mark.parametrize("migratable", [False, True])
def test_signed_and_unsigned_keys_that_are_one_word_are_refused(migratable: bool) -> None:
    batches = [{"k": keys, "other": keys} for keys in (np.array([-1]), np.array([2**64 - 1], "u8"))]
    with pytest.raises(ValueError, match=r"unary: the key 'k' is uint64 in some batches and signed in others"):
        run(migratable, *batches)


@pytest.mark.parametrize("migratable", [False, True])
@pytest.mark.parametrize("kind", ["i8", "u2", "b1", "M8[s]"])
def test_other_keys_are_kept(kind: str, migratable: bool) -> None:
    keys: Array = np.array([0, 1, 1]).astype(kind)
    found = run(migratable, {"k": keys, "other": keys}, {"k": keys[:0], "other": keys[:0]}, {"k": keys, "other": keys})
    assert [total for _, total in found] == [1, 2, 2, 2, 4, 4]
