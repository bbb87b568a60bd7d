"""Slurm's lists of nodes, such as `rack[0-1]n[01-03,7],login`, as the names that they stand for. Pure.

    list    = term {(',' | white space) term}
    term    = {text | '[' range {',' range} ']'}          at least one of these
    range   = digits ['-' digits]                         inclusive; numbers have as many digits as the first, or more

A term with several brackets stands for every combination, the last bracket changing fastest, as for Slurm.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from dataflow.launch.hosts import ClusterError

MOST = 1 << 16  # nodes: more is a mistake, and must not take all memory

_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],\s]+)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def expand(text: str) -> list[str]:
    """The names that a list of nodes stands for, in its order.

    >>> expand("n[08-10,3]")
    ['n08', 'n09', 'n10', 'n3']
    >>> expand("a[0-1]b[1-2],login")
    ['a0b1', 'a0b2', 'a1b1', 'a1b2', 'login']
    """
    names = list(itertools.islice(itertools.chain.from_iterable(map(_names, _terms(text))), MOST + 1))
    if len(names) > MOST:
        raise ClusterError(f"the list of nodes {text[:80]!r} stands for more than {MOST:,} nodes")
    if not names:
        raise ClusterError("the list of nodes is empty")
    return names


def _terms(text: str) -> Iterator[str]:
    """Terms: commas within brackets do not divide."""
    depth, start = 0, 0
    for at, letter in enumerate(f"{text},"):
        if letter in "[]":
            depth += 1 if letter == "[" else -1
            if depth not in (0, 1):
                break
        elif not depth and (letter == "," or letter.isspace()):
            if at > start:
                yield text[start:at]
            elif letter == "," and at < len(text):
                raise ClusterError(f"the list of nodes {text!r} has nothing between two commas, or before the first")
            start = at + 1
    if depth:
        raise ClusterError(f"the brackets of the list of nodes {text!r} do not match")


def _names(term: str) -> Iterator[str]:
    parts: list[list[str]] = []
    at = 0
    while at < len(term):
        found = _PART.match(term, at)
        assert found is not None  # brackets match, and there is no comma outside of them
        parts.append([found[2]] if found[1] is None else list(_numbers(found[1], term)))
        at = found.end()
    return map("".join, itertools.product(*parts))


def _numbers(text: str, term: str) -> Iterator[str]:
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise ClusterError(f"{part!r} in {term!r} is no number, and no range such as 1-3")
        low, high = found[1], found[2] or found[1]
        if int(high) < int(low):
            raise ClusterError(f"{part!r} in {term!r} goes from {low} down to {high}")
        if int(high) - int(low) >= MOST:
            raise ClusterError(f"{part!r} in {term!r} stands for more than {MOST:,} nodes")
        for number in range(int(low), int(high) + 1):
            yield str(number).zfill(len(low))
