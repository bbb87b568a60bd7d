"""When things go wrong: errors name the operator, the bin and the key; nothing is half-installed; nothing hangs."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.state.store import UnmovableState
from dataflow.state.stores.portions import Address
from dataflow.state.stores.row_bins import RowBins
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of
from tests.engine.harness import notes
from tests.launch.arena import Arena
from tests.launch.test_ends import require_one_message

BINS = 4


# ------------------------------------------------------------------------------------------------- folds that raise


@megaphone.fold(state={"share": "i8"}, output={"key": "i8", "share": "i8"})
def divide(key, value, state):
    state.share = 100 // value
    return key, state.share


def divide_rows(time: int, records: list[Any], state: dict[Any, Any], notificator: Any) -> Any:
    for key, value in records:
        state[key] = 100 // value
        yield key, state[key]


def divide_machine(key: Any, value: int, state: Any) -> Any:
    return 100 // value, [(key, 100 // value)]


def divide_both(time: int, left: list[Any], right: list[Any], state: dict[Any, Any], n1: Any, n2: Any) -> Any:
    return [(key, 100 // value) for key, value in (*left, *right)]


def build(kind: str, configuration: Any, stream: Any, **more: Any) -> Any:
    options: dict[str, Any] = {"bins": BINS, "name": "share"} | more
    if kind == "join":
        return megaphone.join(configuration, stream, stream, key="key", **options)
    if kind == "unary":
        return megaphone.unary(configuration, stream, key=lambda r: r[0], fold=divide_rows, **options)
    if kind == "binary":
        return megaphone.binary(configuration, stream, stream, key=lambda r: r[0], fold=divide_both, **options)
    if kind == "machine":
        return megaphone.state_machine(configuration, stream, fold=divide_machine, **options)
    fold = divide if kind == "compiled" else divide.without_compiling()
    return megaphone.state_machine(configuration, stream, key="key", value="value", fold=fold, **options)


@pytest.mark.parametrize("kind", ["unary", "binary", "machine", "compiled", "uncompiled"])
@pytest.mark.parametrize("moved", [False, True], ids=["at home", "after a migration"])
def test_a_fold_that_raises_names_operator_bin_key_and_time(kind: str, moved: bool) -> None:
    """The key -5 is divided by zero, at time 2, among others that are not."""
    number = bin_of(-5, shift_of(BINS))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            data, stream = scope.input()
            probe = build(kind, configuration, stream).probe()
        for time in range(3):
            records = [(7, 3), (-5, 2 - time), (8, 1)] if worker.index == 0 else [(9, 1)]
            if kind in ("compiled", "uncompiled"):
                data.send({"key": np.array([k for k, _ in records]), "value": np.array([v for _, v in records])})
            else:
                data.send(records)
            if moved and worker.index == 1:
                control.send([megaphone.Move(number, (number + 1) % 2)], at=time + 1)
            control.advance_to(time + 1)
            data.advance_to(time + 1)
            await probe.wait_passed(time)

    with pytest.raises(ZeroDivisionError) as caught:
        simulate(main, workers=2, seed=4)
    told = notes(caught.value)
    assert "share S" in told, told
    assert f"bin {number}" in told and "-5" in told and "at 2" in told, told
    assert f"worker {(number + moved) % 2} of 2" in told


def test_a_fold_that_raises_far_into_a_batch_names_its_key() -> None:
    """Compiled: the loop is in the middle of thousands of records."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input()
            data, stream = scope.input()
            build("compiled", configuration, stream)
        values = np.ones(5000, np.int64)
        values[4321] = 0
        data.send({"key": np.arange(5000) * 3, "value": values})

    with pytest.raises(ZeroDivisionError) as caught:
        simulate(main, workers=1)
    key = 4321 * 3
    assert f"in share, for the key {key}, in bin {bin_of(key, shift_of(BINS))} at 0" in notes(caught.value)
    assert f"at the record ({key}, 0)" in caught.value.__notes__


# --------------------------------------------------------------------------------- state that cannot be serialised


class Thing:
    """Not plain data."""

    def __repr__(self) -> str:
        return "<a thing>"


def cyclic() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("state", "pending", "culprit"),
    [
        ({"gold": 1, "silver": Thing()}, [], "bin 3, key 'silver',"),
        ({"gold": cyclic()}, [], "bin 3, key 'gold',"),
        ({"gold": [1, {2: Thing()}]}, [], "bin 3, key 'gold',"),
        ({Thing(): 1}, [], "bin 3, key <a thing>,"),
        (Thing(), [], "bin 3"),
        ({"gold": 1}, [(0, ("tin", 1)), (0, ("lead", Thing()))], r"bin 3, with \('lead', <a thing>\) put off until 9,"),
    ],
    ids=["an object", "a cycle", "deep inside", "a key", "not by key", "a pending record"],
)
@pytest.mark.parametrize("limit", [1 << 17, 1], ids=["in one piece", "in pieces"])
def test_state_that_cannot_move_is_named_and_stays(state: Any, pending: list[Any], culprit: str, limit: int) -> None:
    bins = RowBins(lambda: state)
    bins.state(3)
    if pending:
        bins.put_off(3, 9, pending)
    with pytest.raises(UnmovableState, match=rf"{culprit} cannot move: .*(plain data|recursion)"):
        list(bins.depart(Address(3), limit))
    assert bins.numbers == {3} and bins.state(3) is state
    assert bins.least_pending == (9 if pending else None)
    assert bins.due(9) == ({3: pending} if pending else {})


def test_a_record_that_cannot_move_fails_the_run_and_names_the_operator() -> None:
    def hoard(time: int, records: list[Any], state: dict[Any, Any], notificator: Any) -> Any:
        for key in records:
            notificator.notify_at(time + 9, (key, Thing()))
        return ()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            data, stream = scope.input()
            megaphone.unary(configuration, stream, key=lambda k: k, fold=hoard, bins=1, name="hoard")
        data.send(["gold"])
        control.send([megaphone.Move(0, 1)], at=1)
        data.advance_to(2)
        control.advance_to(2)

    with pytest.raises(UnmovableState, match=r"bin 0, with \('gold', <a thing>\) put off until 9") as failure:
        simulate(main, workers=2)
    assert "hoard F" in notes(failure.value)


# ------------------------------------------------------------------------------- a worker that dies in mid-migration

PROGRAM = """
    import numpy as np, megaphone, megaphone.router.routing, megaphone.host.s
    victim, moment, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    megaphone.router.routing.PIECE, megaphone.router.routing.PIECES = 8, 64

    def die():
        print("dying in mid-migration", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    def patch(worker):
        if moment == "sending":                     # some of the state is on its way, and some is not
            send, calls = megaphone.router.routing.Router._send_pieces, []

            def dying(self, capability):
                calls.append(1)
                if len(calls) == 3:
                    die()
                return send(self, capability)

            megaphone.router.routing.Router._send_pieces = dying
        else:                                       # some has arrived
            host = megaphone.host.s.S
            install, calls = host._install_arrivals, []

            def dying(self):
                if self._arrivals.queue:
                    calls.append(1)
                    install(self)
                    if len(calls) == 2:
                        die()
                else:
                    install(self)

            host._install_arrivals = dying

    def count(time, records, state, notificator):
        for key in records:
            state[key] = state.get(key, 0) + 1
        return ()

    def count_batches(time, batch, state, notificator):
        if len(batch):
            np.add.at(state["count"], state.rows(batch["key"].view(np.uint64)), 1)

    async def main(worker):
        if worker.index == victim:
            patch(worker)
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            data, stream = scope.input()
            if kind == "rows":
                counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=16)
            else:
                counts = megaphone.unary(
                    configuration, stream, key="key", fold=count_batches, state={"count": "i8"}, bins=16
                )
            probe = counts.probe()
        for time in range(10_000):
            keys = np.arange(1000)
            data.send({"key": keys} if kind == "columns" else keys.tolist())
            if worker.index == 0:
                control.send([megaphone.Assign(((time // 4) % 3,) * 16)])
            control.advance_to(time + 1)
            data.advance_to(time + 1)
            await probe.wait_passed(time)

    if __name__ == "__main__":
        dataflow.execute(main, workers=3)
"""


@pytest.mark.parametrize(
    ("victim", "moment", "kind"),
    [(0, "sending", "rows"), (1, "arriving", "rows"), (2, "sending", "columns"), (1, "arriving", "columns")],
)
def test_a_worker_killed_in_mid_migration_ends_all_with_one_message(
    arena: Arena, victim: int, moment: str, kind: str
) -> None:
    program = arena.script(textwrap.dedent(PROGRAM), str(victim), moment, kind)
    program.wait_for("dying in mid-migration")
    program.mark_time()
    ended = program.end()
    require_one_message(ended, rf"worker {victim} was killed by signal 9 \(SIGKILL\)")


# --------------------------------------------------------------------------------------------- what makes no sense


@pytest.mark.parametrize("kind", ["unary", "binary", "machine", "compiled", "join"])
@pytest.mark.parametrize("interval", [-1, float("nan"), float("inf"), "1"])
def test_an_interval_that_is_no_time_is_refused(kind: str, interval: Any) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input("control")
            _, stream = scope.input("data")
            refused = f"share S .*: interval is {interval!r}; it is a number of seconds from 0 on"
            with pytest.raises(dataflow.DataflowError, match=refused):
                build(kind, configuration, stream, interval=interval)
            raise LookupError  # a dataflow that is half built is of no use

    with pytest.raises(LookupError):
        simulate(main, workers=1)


@pytest.mark.parametrize("domain", [1.5, 8.0, "8", None, True])
def test_a_dense_domain_that_is_no_integer_is_refused(domain: Any) -> None:
    with pytest.raises(TypeError, match=f"a dense domain is a number of keys, and so an integer, not {domain!r}"):
        megaphone.dense(domain)
    assert megaphone.dense(np.int64(8)) == megaphone.dense(8)  # type: ignore[arg-type]
