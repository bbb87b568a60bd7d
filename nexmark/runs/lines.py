"""How many lines the queries have, beside the paper's Table 1: ``python -m nexmark.runs.lines`` prints the table.

A line of code is one that is not blank, not a comment and not part of a docstring. A query's lines are those of its
body and of the folds and functions that it alone uses; what both variants need for all queries, the operators, is
counted apart.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TypeAlias

from dataflow.state.folds.fold import Fold
from megaphone.harness.tables import table
from nexmark.queries import (
    counting,
    daily,
    distinct,
    folds,
    foremost,
    highest_bids,
    hot_auctions,
    lookups,
    operators,
    queries,
    sessions,
    winners,
)

PAPER = {
    "native": (12, 14, 58, 128, 73, 130, 55, 58),
    "Megaphone": (16, 18, 41, 74, 46, 74, 54, 29),
}  # Table 1: Q1 to Q8

Code: TypeAlias = Fold | ModuleType | Callable[..., object]

# What each query has besides its body; that of Q4 and Q6 is shared, and counted for both, as in the paper.
DISTINCT = (distinct.see, distinct.forget_seen, distinct.add, distinct.end_sums)  # of Q15 and Q16, counted for both
CLOSED = (foremost, queries.closed_auctions, folds.open_auction, folds.best_bid, folds.close_auction)
PARTS: Mapping[str, Sequence[Code]] = {
    "q1": (),
    "q2": (),
    "q3": (),
    "q4": (*CLOSED, folds.average_of_all),
    "q5": (folds.count_bids, folds.end_pane, counting, hot_auctions),
    "q6": (*CLOSED, folds.average_of_ten),
    "q7": (folds.highest_bid, folds.end_window, highest_bids),
    "q8": (folds.register, folds.offer, folds.end_registration),
    "q0": (),
    "q9": (foremost, winners.offer_for_sale, winners.best_whole_bid, winners.sell),
    "q10": (),
    "q11": (sessions.extend_session, sessions.end_session),
    "q12": (sessions.count_entered, sessions.end_entered),
    "q13": (lookups.side_input,),
    "q14": (lookups.time_of_day,),
    "q15": DISTINCT,
    "q16": DISTINCT,
    "q17": (daily.trade, daily.end_trade),
    "q18": (daily.last_bid, daily.end_last_bid),
    "q19": (daily.rank_bid, daily.end_ranks),
    "q20": (),
    "q21": (lookups.known_channels, lookups.channels_of_urls),
    "q22": (),
}


def lines_of(thing: Code) -> int:
    """The lines of code of a function, a class, a module or a fold.

    >>> lines_of(lines_of)
    5
    """
    source = inspect.getsource(thing.function if isinstance(thing, Fold) else thing)
    tree = ast.parse(inspect.cleandoc("\n" + source) if not inspect.ismodule(thing) else source)
    numbers = {number for node in ast.walk(tree) for number in _span(node)}
    return len(numbers - {number for node in ast.walk(tree) for number in _docstring(node)})


def _span(node: ast.AST) -> range:
    """The lines of a simple statement, or of the head of one that has others in it."""
    if not isinstance(node, ast.stmt):
        return range(0)
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    body = getattr(node, "body", None)
    return range(first, body[0].lineno if body else (node.end_lineno or first) + 1)


def _docstring(node: ast.AST) -> range:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return range(0)


def query_table() -> str:
    """A row for each body, what it uses, and the paper's, a column for each of the paper's queries."""
    rows = [
        *_counted(queries.PAPERS),
        ["the paper's, native", *map(str, PAPER["native"])],
        ["the paper's, Megaphone", *map(str, PAPER["Megaphone"])],
        ["the paper's, both", *(str(sum(both)) for both in zip(*PAPER.values(), strict=True))],
    ]
    return table(["lines of code", *(name.upper() for name in queries.PAPERS)], rows)


def community_table() -> str:
    """The same for the queries that the paper does not have."""
    names = [name for name in queries.QUERIES if name not in queries.PAPERS]
    return table(["lines of code", *(name.upper() for name in names)], _counted(names))


def _counted(names: Sequence[str]) -> list[list[str]]:
    bodies = [lines_of(queries.QUERIES[name]) for name in names]
    parts = [sum(map(lines_of, PARTS[name])) for name in names]
    return [
        ["body, for both variants", *map(str, bodies)],
        ["its folds and functions", *map(str, parts)],
        ["together", *(str(body + part) for body, part in zip(bodies, parts, strict=True))],
    ]


def operator_table() -> str:
    """What each set of operators adds to that, once for all queries."""
    sets = (operators.NativeOperators, operators.MigratableOperators)
    return table(["set of operators, once", "lines"], [[each.__name__, str(lines_of(each))] for each in sets])


if __name__ == "__main__":
    print(query_table())
    print()
    print(community_table())
    print()
    print(operator_table())
