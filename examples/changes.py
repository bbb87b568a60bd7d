# examples/changes.py: change capture to a materialised view: the total of each customer's open orders, in SQLite
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
import dataflow
from dataflow import sinks
from dataflow.state import native

Change = tuple[str, tuple[int, str, int]]  # what happened to a row (number, customer, amount)

CHANGES: list[Change] = [
    ("insert", (1, "ann", 20)), ("insert", (2, "bob", 10)), ("insert", (3, "ann", 5)),
    ("update", (1, "ann", 25)), ("delete", (2, "bob", 10)), ("insert", (4, "bob", 7)),
]

Orders = dict[int, int]

def apply(customer: str, change: Change, orders: Orders | None) -> tuple[Orders, list[tuple[str, int, int]]]:
    what, (number, _, amount) = change
    orders = dict(orders or {})
    if what == "delete":
        orders.pop(number)
    else:
        orders[number] = amount
    return orders, [(customer, len(orders), sum(orders.values()))]

async def main(worker: dataflow.Worker, database: str) -> None:
    with worker.dataflow() as scope:
        changes = scope.source(CHANGES if worker.index == 0 else [], batch=1)
        keyed = changes.map(lambda change: (change[1][1], change))
        view = native.state_machine(keyed, fold=apply, name="view")
        view.sink(sinks.sqlite(database, "totals", columns=("customer", "orders", "total"), key=("customer",)))

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "view.db")
        dataflow.execute(main, database, workers=2)
        with closing(sqlite3.connect(database)) as connection:
            for row in connection.execute("SELECT customer, orders, total FROM totals ORDER BY customer"):
                print(*row)
