# examples/fraud.py: alerts by pattern and timer: a charge of under 1 and then one of over 500 on one card within a minute
from collections.abc import Iterable
from typing import Any
import dataflow
from dataflow.state import native

Charge = tuple[int, str, float]  # second, card, amount

CHARGES: list[Charge] = [
    (10, "A", 0.5), (12, "B", 20.0), (50, "A", 900.0),  # A: 40 s after the small one
    (100, "B", 0.7), (190, "B", 700.0),  # B: too long after
    (200, "C", 600.0), (210, "C", 0.1), (230, "C", 501.0),
]

def watch(time: int, charges: list[Charge], small: dict[str, int], timer: Any) -> Iterable[str]:
    for second, card, amount in charges:
        if amount < 0:  # the timer: a minute has passed
            if small.get(card) == second:
                del small[card]
        elif amount < 1:
            small[card] = time
            timer.notify_at(time + 60, (time, card, -1.0))
        elif amount > 500 and card in small:
            yield f"{time}: card {card} was charged {amount:g}, {time - small[card]} s after a small amount"

async def main(worker: dataflow.Worker) -> list[str]:
    out: list[str] = []
    with worker.dataflow(time="s") as scope:
        charges = scope.source(CHARGES if worker.index == 0 else []).event_time(lambda charge: charge[0], delay="30s")
        alerts = native.unary(charges, key=lambda charge: charge[1], fold=watch, state=dict, name="watch")
        alerts.inspect(lambda time, alert: out.append(alert))
    return out

if __name__ == "__main__":
    for alert in sorted(alert for some in dataflow.execute(main, workers=2) for alert in some):
        print(alert)
