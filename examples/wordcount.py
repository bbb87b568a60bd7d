# examples/wordcount.py: a migratable word count, driven from its configuration stream (the paper's Listing 2)
from collections.abc import Iterator
from typing import Any
import dataflow
import megaphone

def count(time: int, records: list[tuple[str, int]], state: dict[str, int], notificator: Any) -> Iterator[tuple[str, int]]:
    for word, diff in records:
        state[word] = state.get(word, 0) + diff
        yield word, state[word]

async def main(worker: dataflow.Worker) -> None:
    with worker.dataflow() as scope:
        control, configuration = scope.input()
        words, text = scope.input()
        counts = megaphone.unary(configuration, text, key=lambda record: record[0], fold=count, bins=256)
        probe = counts.inspect(lambda t, r: print(t, *r)).probe()
    for round, line in enumerate(["the quick fox", "the lazy dog", "the end"]):
        if worker.index == 0:
            words.send([(word, 1) for word in line.split()])
            if round == 1:
                control.send([megaphone.Move(bin=b, worker=1) for b in range(256)])
        words.advance_to(round + 1)
        control.advance_to(round + 1)
        await probe.wait_passed(round)

if __name__ == "__main__":
    dataflow.execute(main, workers=2)
