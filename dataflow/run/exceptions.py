"""Exceptions for people, out of the groups that nurseries make of them."""

from __future__ import annotations

from dataflow.errors import DataflowError, PeerLost


def unwrap(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception that a person wants to see.

    A program's own exception comes before the engine's complaints about the consequences. Others become notes.
    """
    first, *others = sorted(leaves(group), key=_consequence)
    for other in others:
        if not isinstance(other, PeerLost):
            first.add_note(f"at the same time: {type(other).__name__}: {other}")
    return first


def leaves(error: BaseException) -> list[BaseException]:
    """The exceptions in a group of groups. A group with a note is an operator's own, and stays whole."""
    if isinstance(error, BaseExceptionGroup) and not getattr(error, "__notes__", None):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


def _consequence(error: BaseException) -> int:
    """0 for a cause, more for what is likely to be the consequence of one."""
    if isinstance(error, PeerLost):
        return 2
    return 1 if isinstance(error, DataflowError) else 0
