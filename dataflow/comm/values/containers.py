"""The containers of Python's `collections` as plain data."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

from dataflow.comm.values.refusal import Refusal

_FACTORIES: dict[str, Any] = {
    kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)
}


def of_deque(value: deque[Any]) -> list[Any]:
    """Its items, and how many it may have."""
    return [value.maxlen, list(value)]


def to_deque(plain: Any) -> deque[Any]:
    """The deque that `of_deque` was given."""
    return deque(plain[1], plain[0])


def of_default(value: defaultdict[Any, Any]) -> list[Any]:
    """Its items, and the name of the function that makes its defaults."""
    factory = value.default_factory
    name = getattr(factory, "__name__", None)
    if factory is not None and _FACTORIES.get(str(name)) is not factory:
        raise Refusal(
            value,
            f"A defaultdict can be sent if what makes its defaults is one of {', '.join(_FACTORIES)}: "
            "send a plain dict, or take one of these.",
        )
    return [name, dict(value)]


def to_default(plain: Any) -> defaultdict[Any, Any]:
    """The defaultdict that `of_default` was given."""
    name, items = plain
    return defaultdict(None if name is None else _FACTORIES[name], items)


def of_mapping(value: OrderedDict[Any, Any] | Counter[Any]) -> dict[Any, Any]:
    """Its items. These two are dictionaries that may have attributes as well."""
    if vars(value):
        raise Refusal(value, f"It has attributes ({', '.join(map(str, vars(value)))}): send a dataclass that has both.")
    return dict(value)


def to_counter(plain: Any) -> Counter[Any]:
    """The Counter that `of_mapping` was given: whatever its counts are, they are not added up."""
    made: Counter[Any] = Counter()
    dict.update(made, plain)
    return made
