"""The containers of Python's `collections` as plain data."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable

from dataflow.comm.values.refusal import Refusal
from dataflow.comm.values.shapes import require_integer, require_list, require_mapping, require_text

_FACTORIES: dict[str, Callable[[], object]] = {
    kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)
}


def of_deque(value: deque[object]) -> list[object]:
    """Its items, and how many it may have."""
    return [value.maxlen, list(value)]


def to_deque(plain: object) -> deque[object]:
    """The deque that `of_deque` was given."""
    most, items = require_list(plain, 2)
    return deque(require_list(items), None if most is None else require_integer(most))


def of_default(value: defaultdict[object, object]) -> list[object]:
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


def to_default(plain: object) -> defaultdict[object, object]:
    """The defaultdict that `of_default` was given."""
    name, items = require_list(plain, 2)
    return defaultdict(None if name is None else _FACTORIES[require_text(name)], require_mapping(items))


def of_mapping(value: OrderedDict[object, object] | Counter[object]) -> dict[object, object]:
    """Its items. These two are dictionaries that may have attributes as well."""
    if vars(value):
        raise Refusal(value, f"It has attributes ({', '.join(map(str, vars(value)))}): send a dataclass that has both.")
    return dict(value)


def to_counter(plain: object) -> Counter[object]:
    """The Counter that `of_mapping` was given: whatever its counts are, they are not added up."""
    if type(plain) is not dict:
        raise ValueError(f"{type(plain).__name__} where a dictionary belongs")
    made: Counter[object] = Counter()
    dict.update(made, plain)
    return made
