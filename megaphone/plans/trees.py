"""Plans as binary trees over streams: how people write them, when two are the same, and what two have in common. Pure.

A tree is written as it is drawn, with a pair of brackets around each join but the last: ``((a b) c) d`` is left-deep,
``a (b (c d))`` right-deep, ``(a b) (c d)`` bushy. Swapping the two sides of a join makes no other plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dataflow.errors import ConstructionError

Streams: TypeAlias = frozenset[str]

_WORD = re.compile(r"\s*([()]|[^\s()]+)")


class BadPlan(ConstructionError):
    """A plan that cannot be one."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A source of a tree: a stream; or, within a task, a part of the plan that old and new have in common."""

    streams: Streams

    def __str__(self) -> str:
        return next(iter(self.streams)) if len(self.streams) == 1 else f"[{' '.join(sorted(self.streams))}]"


class Join:
    """A node: the join of two trees. Equal to another up to swapping sides."""

    __slots__ = ("_key", "left", "right", "streams")

    def __init__(self, left: Tree, right: Tree) -> None:
        self.left = left
        self.right = right
        self.streams: Streams = left.streams | right.streams
        self._key = frozenset((left, right))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Join) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return f"{_bracketed(self.left)} {_bracketed(self.right)}"

    def __repr__(self) -> str:
        return f"<plan {self}>"


Tree: TypeAlias = Leaf | Join


def _bracketed(tree: Tree) -> str:
    return f"({tree})" if isinstance(tree, Join) else str(tree)


def parse(text: str, streams: Sequence[str]) -> Tree:
    """The tree that is written, which must have every stream once; BadPlan says what is wrong.

    >>> str(parse("((a b) c) d", "abcd")), parse("a (b c)", "abc") == parse("(c b) a", "abc")
    ('((a b) c) d', True)
    """
    if not isinstance(text, str):
        raise BadPlan(f"a plan is written as text, such as '(a b) c', not {text!r}")
    words = [match.group(1) for match in _WORD.finditer(text)]
    tree, rest = _parse_terms(words, 0, text, streams)
    if rest != len(words):
        raise BadPlan(f"the plan {text!r} has a bracket too many, before {' '.join(words[rest:])!r}")
    missing = [stream for stream in streams if stream not in tree.streams]
    if missing:
        raise BadPlan(f"the plan {text!r} leaves out {', '.join(missing)}: a plan joins all streams")
    return tree


def _parse_terms(words: list[str], at: int, text: str, streams: Sequence[str]) -> tuple[Tree, int]:
    """One term, or two that are joined; and where the words after them begin."""
    terms: list[Tree] = []
    while at < len(words) and words[at] != ")":
        if words[at] == "(":
            term, at = _parse_terms(words, at + 1, text, streams)
            if at == len(words):
                raise BadPlan(f"the plan {text!r} has a bracket that does not close")
            at += 1
        else:
            term, at = _leaf(words[at], text, streams), at + 1
        terms.append(term)
    if not terms:
        raise BadPlan(f"the plan {text!r} joins nothing: write streams, such as {' '.join(streams[:2])!r}")
    if len(terms) > 2:
        raise BadPlan(
            f"the plan {text!r} has {len(terms)} parts side by side: a join has two: say with brackets which come first"
        )
    if len(terms) == 1:
        return terms[0], at
    both = terms[0].streams & terms[1].streams
    if both:
        raise BadPlan(f"the plan {text!r} has {min(both)} twice")
    return Join(*terms), at


def _leaf(word: str, text: str, streams: Sequence[str]) -> Leaf:
    if word not in streams:
        raise BadPlan(f"the plan {text!r} has {word!r}, which is no stream: there are {', '.join(streams)}")
    return Leaf(frozenset((word,)))


def canonical(tree: Tree, streams: Sequence[str]) -> Tree:
    """The same plan, with the side of the earlier streams on the left: plans that are equal are written alike.

    >>> str(canonical(parse("(d c) (b a)", "abcd"), "abcd"))
    '(a b) (c d)'
    """
    if isinstance(tree, Leaf):
        return tree
    sides = (canonical(side, streams) for side in (tree.left, tree.right))
    return Join(*sorted(sides, key=lambda side: min(streams.index(stream) for stream in side.streams)))


def joins(tree: Tree) -> Iterator[Join]:
    """Every node, children before parents."""
    if isinstance(tree, Join):
        yield from joins(tree.left)
        yield from joins(tree.right)
        yield tree


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Every source, from left to right."""
    if isinstance(tree, Join):
        yield from leaves(tree.left)
        yield from leaves(tree.right)
    else:
        yield tree


def lowest(tree: Tree) -> list[Join]:
    """Each lowest node, one with two sources: L of section 3.3."""
    return [node for node in joins(tree) if isinstance(node.left, Leaf) and isinstance(node.right, Leaf)]


def parents(tree: Tree) -> Mapping[Streams, Join]:
    """By the streams of a node or source, the node above it."""
    return {child.streams: node for node in joins(tree) for child in (node.left, node.right)}


@dataclass(frozen=True, slots=True)
class Cut:
    """What old and new plan have in common: for each common set of streams the trees below it, as far as the next."""

    streams: Streams
    old: Tree
    new: Tree

    @property
    def is_shared(self) -> bool:
        """Whether both do the same: there is nothing to migrate."""
        return self.old == self.new


def decompose(old: Tree, new: Tree) -> list[Cut]:
    """The tasks of a migration, lower ones before those above them (section 3.2).

    There is one for each set of streams that some node of either tree joins. In a task, the nearest such sets below are
    sources: what they join is the same whichever way they do it.

    >>> cuts = decompose(parse("((a b) c) d", "abcd"), parse("(c (a b)) d", "abcd"))
    >>> [(str(cut.old), str(cut.new), cut.is_shared) for cut in cuts]
    [('a b', 'a b', True), ('[a b] c', 'c [a b]', True), ('[a b c] d', '[a b c] d', True)]
    """
    common = {node.streams for node in joins(old)} & {node.streams for node in joins(new)}
    cuts = [Cut(streams, *(_below(_node(tree, streams), common) for tree in (old, new))) for streams in common]
    return sorted(cuts, key=lambda cut: (len(cut.streams), sorted(cut.streams)))


def _node(tree: Tree, streams: Streams) -> Join:
    return next(node for node in joins(tree) if node.streams == streams)


def _below(node: Join, common: set[Streams]) -> Join:
    """A node with its tree, cut off where common sets begin."""

    def cut(tree: Tree) -> Tree:
        if isinstance(tree, Leaf) or tree.streams in common:
            return Leaf(tree.streams)
        return Join(cut(tree.left), cut(tree.right))

    return Join(cut(node.left), cut(node.right))
