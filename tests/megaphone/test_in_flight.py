"""State on its way: never more than a step's budget, and of what is larger than that never more than F's window.

Counted where pieces are made and where they are installed, on all workers together, under the seeded scheduler, which
delivers late and in any order; and on processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.channels.channel import AcknowledgedChannel
from dataflow.state.stores.row_store import RowStore
from dataflow.testing import simulate
from megaphone import all_at_once, batched, fluid, matched
from megaphone.keys.pinning import PinningStore
from megaphone.migration.strategies import Strategy

BINS, KEYS, TIMES = 16, 1200, 70
PEERS = 3


class Account:
    """What has been taken out of one store and not been put into another, in bytes of state; and the most there was."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = self.most = self.moved = 0
        for store in (RowStore, PinningStore):
            self._watch(store, patch)

    def _watch(self, store: type[Any], patch: pytest.MonkeyPatch) -> None:
        take, put = store.take_bin, store.put

        def out(*args: Any) -> Iterator[Any]:
            for piece in take(*args):
                self.now += piece.words.nbytes
                self.moved += piece.words.nbytes
                self.most = max(self.most, self.now)
                yield piece

        def back(self_: Any, piece: Any) -> None:
            put(self_, piece)
            self.now -= piece.words.nbytes

        patch.setattr(store, "take_bin", out)
        patch.setattr(store, "put", back)


@megaphone.fold(state={"count": "i8", "more": "i8"}, compiled=False)
def count(key, state):
    state.count += 1


def count_rows(time: int, keys: list[Any], state: dict[Any, Any], notificator: Any) -> Any:
    for key in keys:
        state[key] = state.get(key, 0) + 1
    return ()


async def main(worker: dataflow.Worker, kind: str, strategy: Strategy) -> Any:
    """Everything moves on by one worker, from time 4 on. The counts here, the sizes told, and whether it is done."""
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        if kind == "rows":
            counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count_rows, bins=BINS, interval=0.0)
        else:
            counts = megaphone.state_machine(configuration, stream, key="key", fold=count, bins=BINS, interval=0.0)
        probe = counts.probe()
    controller = megaphone.Controller(control, counts)
    sizes: Any = None
    for time in range(TIMES):
        keys = np.arange(worker.index, KEYS, worker.peers) if time == 0 else np.array([time % 7])
        data.send(keys.tolist() if kind == "rows" else {"key": keys})
        data.advance_to(time + 1)
        if time == 4:
            sizes = controller.statistics.bytes.copy()
            if worker.index == 0:
                controller.migrate([(number + 1) % worker.peers for number in range(BINS)], strategy)
        controller.advance_to(time + 1)
        await probe.wait_passed(time)
    store = counts.handle.store
    entries = [entry for bin in store.occupied().tolist() for entry in store.view(bin).entries.items()]
    held = {key: state if kind == "rows" else state["count"] for key, state in entries}
    return held, sizes, controller.busy, controller.configuration


def run(kind: str, strategy: Strategy, seed: int) -> Any:
    """Runs and checks the counts; what the statistics said of sizes."""
    results = simulate(main, kind, strategy, workers=PEERS, seed=seed)
    totals = Counter(range(KEYS)) + Counter([time % 7 for time in range(1, TIMES)] * PEERS)
    held = [pair for counts, *_ in results for pair in counts.items()]
    assert Counter(held) == Counter(totals.items())
    for _, sizes, busy, configuration in results:
        assert not busy and configuration == tuple((number + 1) % PEERS for number in range(BINS))
        assert (sizes > 0).all()
    return results[0][1]


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_no_strategy_has_more_than_its_budget_on_its_way(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch)
    sizes = run(kind, all_at_once(), 0)
    whole = account.moved
    assert account.now == 0 and account.most > 0.7 * whole, "all at once: nearly everything"
    budget = int(3 * sizes.max())
    for seed, make in enumerate([fluid, lambda **o: batched(5, **o), lambda **o: batched(BINS, **o), matched]):
        account.most = 0
        run(kind, make(budget=budget), seed)
        assert account.now == 0 and 0 < account.most <= budget < whole / 2
    assert account.moved == 5 * whole


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_of_bins_above_the_budget_no_more_is_on_its_way_than_the_window(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each goes alone, and F waits for what it has sent to be taken; so it does with no budget at all."""
    window, piece = 512, 32
    monkeypatch.setattr("megaphone.router.routing.WINDOW", window)
    monkeypatch.setattr("megaphone.router.routing.PIECE", piece // 8)
    account = Account(monkeypatch)
    for seed, strategy in enumerate([fluid(budget=1), batched(BINS, budget=1), matched(budget=1)]):
        account.most = 0
        sizes = run(kind, strategy, seed)
        assert account.now == 0 and piece < account.most <= window + 2 * piece
        assert sizes.min() > 1.5 * account.most, "of no bin all was on its way"
    account.most = 0
    run(kind, all_at_once(), 3)
    assert account.now == 0 and account.most <= PEERS * (window + 2 * piece), "every worker sends"


def test_on_processes_f_waits_for_what_it_has_sent_to_be_taken() -> None:
    """By the senders' own accounts, which acknowledgements bring back to nothing."""
    for kind in ("rows", "columns"):
        for most, left, moved in dataflow.execute(accounted, kind, workers=2):
            assert left == 0 and moved > 3 * 1024
            assert most <= 1024 + 4 * 128, "the window, and the message that fills it, as senders weigh them"


async def accounted(worker: dataflow.Worker, kind: str) -> Any:
    """The most that this worker had on its way, what it has in the end, and all that it sent."""
    totals = Counter[str]()
    ports = []
    send = AcknowledgedChannel._send_and_note

    def note(self: Any, *args: Any) -> int:
        size = send(self, *args)
        totals["moved"] += size
        totals["most"] = max(totals["most"], self._port.on_its_way)
        ports.append(self._port)
        return size

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AcknowledgedChannel, "_send_and_note", note)
        patch.setattr("megaphone.router.routing.WINDOW", 1024)
        patch.setattr("megaphone.router.routing.PIECE", 16)
        await main(worker, kind, all_at_once())
    return totals["most"], ports[0].on_its_way, totals["moved"]
