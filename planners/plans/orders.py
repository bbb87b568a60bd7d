"""Join orders: binary trees over streams, as plain values. `megaphone.plans.trees` reads the same text.

An order is a stream's name, or a pair of orders. Which side is which makes no difference to what a plan does, so that
orders here are in one form: the side with the stream that comes first in the alphabet is on the left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from planners.errors import BadRequest

Order: TypeAlias = "str | tuple[Order, Order]"
_WORD = re.compile(r"\s*([()]|[^\s()]+)")


def ordered(one: Order, other: Order) -> Order:
    """The join of two orders, in its one form."""
    return (one, other) if min(streams_of(one)) < min(streams_of(other)) else (other, one)


def streams_of(order: Order) -> frozenset[str]:
    """The streams that are joined."""
    return frozenset((order,)) if isinstance(order, str) else streams_of(order[0]) | streams_of(order[1])


def nodes_of(order: Order) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """The streams of the two sides of each join, lower ones first."""
    if not isinstance(order, str):
        yield from nodes_of(order[0])
        yield from nodes_of(order[1])
        yield streams_of(order[0]), streams_of(order[1])


def write(order: Order) -> str:
    """As people write it.

    >>> write((("a", "b"), "c"))
    '(a b) c'
    """
    if isinstance(order, str):
        return order
    return " ".join(side if isinstance(side, str) else f"({write(side)})" for side in order)


def read(text: str, streams: Sequence[str]) -> Order:
    """The order that is written, which must have every stream once.

    >>> read("c (b a)", "abc")
    (('a', 'b'), 'c')
    """
    words = [match.group(1) for match in _WORD.finditer(text)]
    seen = [word for word in words if word not in "()"]
    if sorted(seen) != sorted(streams):
        raise BadRequest(f"the plan {text!r} must have each of {', '.join(streams)} once")
    order, rest = _terms(words, text)
    if rest:
        raise BadRequest(f"the plan {text!r} has a bracket too many")
    return order


def _terms(words: list[str], text: str) -> tuple[Order, list[str]]:
    terms: list[Order] = []
    while words and words[0] != ")":
        if words[0] == "(":
            term, words = _terms(words[1:], text)
            if not words:
                raise BadRequest(f"the plan {text!r} has a bracket that does not close")
            terms.append(term)
        else:
            terms.append(words[0])
        words = words[1:]
    if not 1 <= len(terms) <= 2:
        raise BadRequest(f"the plan {text!r} joins {len(terms)} parts at once: a join has two, such as '(a b) c'")
    return (terms[0] if len(terms) == 1 else ordered(*terms)), words
