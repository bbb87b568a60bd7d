"""Single keys of rows that live apart from their bins: the same properties, the same errors at the same line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.errors import ConstructionError
from dataflow.state.pieces import Piece, unpack
from dataflow.state.store import UnmovableState
from dataflow.state.stores.portions import Address
from dataflow.state.stores.row_bins import RowBins
from dataflow.testing import simulate
from megaphone.control.files import read_control
from megaphone.control.updates import parse_lines
from megaphone.router.routing import Router
from tests.megaphone import cases
from tests.megaphone.pin_cases import pin_changes, random_rows, run_rows, run_two_inputs

CASES = 200


@pytest.mark.parametrize("share", range(4))
def test_correctness_migration_and_completion(share: int) -> None:
    for seed in range(share, CASES, 4):
        run_rows(seed)


def test_state_machines_and_two_inputs() -> None:
    for seed in range(100):
        run_two_inputs(seed)


@pytest.mark.parametrize("workers", [2, 4])
def test_on_real_processes(workers: int) -> None:
    for seed in range(3):
        records, updates, times, bins = random_rows(seed, workers)
        results = dataflow.execute(cases.main, records, updates, times, bins, 1, True, workers=workers)
        cases.check(results, records, updates, bins, workers)


def test_the_cases_have_something_in_them() -> None:
    """Keys that are pinned, moved while pinned, and unpinned; strings among them."""
    changes = {"begins": 0, "moves": 0, "ends": 0, "strings": 0}
    for seed in range(CASES):
        records, updates, times, _ = random_rows(seed, 1 + seed % 4)
        for key in {key for batch in records.values() for key, _ in batch}:
            for _, change in pin_changes(updates, key, times):
                changes[change] += 1
                changes["strings"] += isinstance(key, str)
    assert min(changes.values()) > 30, changes


def bins_first(self: Any, migration: Any) -> Any:
    yield from DEPARTING(self, replace(migration, keys=None))
    if migration.keys is not None:
        yield from self._departing_keys(migration.keys)


def install_at_once(self: Any) -> None:
    for message, batch in self._arrivals:
        for piece in unpack(batch["words"]):
            self._store.put(piece)
        self._host.hold_from(message)


def without_pending(self: Any, to: Address, key_of: Any, limit: int) -> Any:
    """Takes the state of a key, and not its pending records."""
    pending = self._pending.pop(to.bin, None)
    pieces = [*DEPART_KEY(self, to, key_of, limit)]
    if pending is not None:
        self._pending[to.bin] = pending
    return iter(pieces)


DEPARTING, DEPART_KEY = Router._departing, RowBins.depart_key


def test_the_properties_hold_where_keys_and_bins_go_in_pieces(small_pieces: list[Piece]) -> None:
    for seed in range(100):
        run_rows(seed)
    assert sum(piece.returns for piece in small_pieces) > 200, "keys went back in pieces"


@pytest.mark.parametrize(
    ("target", "how"),
    [
        ("megaphone.control.configuration.Configurations.overrides_at", lambda self, time: None),
        ("megaphone.control.configuration.Configurations.overrides_at", lambda self, time: self.latest_overrides),
        ("dataflow.state.stores.row_bins.RowBins.depart_key", without_pending),
        ("megaphone.router.routing.Router._departing", bins_first),
        ("megaphone.host.s.S._install_arrivals", install_at_once),
        ("dataflow.state.stores.row_bins.RowBins.install_key", lambda self, number, arrived: None),
    ],
    ids=[
        "records do not follow",
        "routes by the latest pins",
        "leaves pending records behind",
        "takes bins before keys",
        "does not wait for the bin",
        "loses what goes back",
    ],
)
def test_a_broken_rule_is_found_out(target: str, how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, how)

    def fails(seed: int) -> bool:
        try:
            run_rows(seed)
        except Exception:
            return True
        return False

    assert any(fails(seed) for seed in range(CASES))


def try_to_pin(build: Callable[[Any, Any], Any], update: Any) -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            _, stream = scope.input("data")
            operator = build(configuration, stream)
        control.send([megaphone.Move(0, 1), update])
        return operator.handle.configuration.tolist()

    simulate(main, workers=2)


def machine(configuration: Any, stream: Any) -> Any:
    return megaphone.state_machine(configuration, stream, fold=lambda key, value, state: (value, ()), name="sums")


def opaque(configuration: Any, stream: Any) -> Any:
    return megaphone.unary(configuration, stream, key=len, fold=lambda *_: (), name="words")


@pytest.mark.parametrize(
    ("build", "update", "complaint"),
    [
        (opaque, megaphone.Pin("fox", 1), "words: no key can be pinned: .*by_key=True.* or use state_machine"),
        (machine, megaphone.Pin(["fox"], 1), r"sums: \['fox'\] is not a key that can be pinned: .*list has no hash"),
        (machine, megaphone.Pin(float("nan"), 1), "sums: nan cannot be pinned: it is not equal to itself"),
        (machine, megaphone.Pin("fox", 2), "there is no worker 2: there are 2, from 0 to 1"),
        (machine, megaphone.Pin("fox", "dog"), "'dog' is not the number of a worker"),
        (machine, megaphone.Pin("fox", True), "True is not the number of a worker"),
        (machine, megaphone.Pin("fox", -1), r"send Unpin\('fox'\)"),
        (machine, megaphone.Pins(["fox", "dog"], [1]), "pins of 2 keys to 1 workers"),
    ],
    ids=["no keys", "a list", "nan", "no worker", "a name", "a truth", "home", "lengths"],
)
def test_bad_pins_are_refused_where_they_are_sent(build: Any, update: Any, complaint: str) -> None:
    with pytest.raises(megaphone.ControlError, match=complaint):
        try_to_pin(build, update)


def test_by_key_needs_a_dictionary_and_rows() -> None:
    async def main(worker: dataflow.Worker, **options: Any) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input("control")
            _, stream = scope.input("data")
            megaphone.unary(configuration, stream, fold=lambda *_: (), by_key=True, **options)

    with pytest.raises(ConstructionError, match="with by_key=True the state is a dictionary by key, not a list"):
        simulate(partial(main, key=len, state=list), workers=1)
    with pytest.raises(ConstructionError, match="by_key= is for rows; keys of columns can be pinned as they are"):
        simulate(partial(main, key="key", state={"n": "i8"}), workers=1)


def test_a_state_that_became_something_else_is_named() -> None:
    bins = RowBins(dict)
    bins._states[3] = [1, 2]
    with pytest.raises(UnmovableState, match="the state of bin 3 is a list, and with by_key=True it must be a dict"):
        list(bins.depart_key(Address(3, ("fox",), True), [len], 100))


def test_a_key_that_cannot_move_is_named_and_stays() -> None:
    bins = RowBins(dict)
    bins.state(3).update({"fox": object(), "dog": 1})
    with pytest.raises(UnmovableState, match="the key 'fox', key 'fox', cannot move"):
        list(bins.depart_key(Address(3, ("fox",), True), [len], 100))
    assert set(bins.state(3)) == {"fox", "dog"}


def test_an_error_names_the_pinned_key() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            data, stream = scope.input("data")
            megaphone.state_machine(configuration, stream, fold=lambda key, value, state: (1 // value, ()))
        control.send([megaphone.Pin("fox", 0)])
        data.send([("fox", 0)])

    with pytest.raises(ZeroDivisionError) as caught:
        simulate(main, workers=1)
    assert "for the key 'fox', which is pinned, at 0" in str(caught.value.__notes__)


def test_lines_of_control_may_name_any_key(tmp_path: Any) -> None:
    lines = ['{"time": 5, "key": "fox", "worker": 1}', '{"time": 9, "key": ["a", 1], "worker": null}']
    expected = [(5, megaphone.Pin("fox", 1)), (9, megaphone.Unpin(("a", 1)))]
    assert list(parse_lines(lines)) == expected
    (tmp_path / "planned.jsonl").write_text("\n".join(lines))
    read = read_control(tmp_path / "planned.jsonl", bins=4, workers=2)
    assert [(time, update.keys, update.workers.tolist()) for time, update in read] == [
        (5, ["fox"], [1]),
        (9, [("a", 1)], [-1]),
    ]


def test_a_controller_pins_keys_of_rows() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            data, stream = scope.input("data")
            sums = megaphone.state_machine(
                configuration, stream, fold=lambda key, value, state: ((state or 0) + value, ()), bins=4
            )
            probe = sums.probe()
        controller = megaphone.Controller(control, sums)
        for time in range(8):
            data.send([("fox", 1), ("dog", 1)])
            if time == 1 and worker.index == 0:
                controller.migrate(controller.configuration, pins={"fox": 1, "dog": 1})
            if time == 4 and worker.index == 0:
                controller.migrate(controller.configuration, pins={"dog": None})
            controller.advance_to(time + 1)
            data.advance_to(time + 1)
            await probe.wait_passed(time)
        return controller.pinned, sums.handle.store.view_apart()

    assert simulate(main, workers=2) == [({"fox": 1}, {}), ({"fox": 1}, {"fox": 16})]


