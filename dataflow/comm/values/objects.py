"""Instances of the program's classes as plain data: dataclasses, named tuples and enums.

Each names its class, which is looked up among the modules that are already imported: decoding never imports a module of
the program's and never calls a constructor of its own. A dataclass travels as the values of its fields. If it has
attributes besides (`__post_init__` or a subclass set them), or lacks one, all of its attributes travel by name.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from types import MemberDescriptorType
from typing import NamedTuple

from dataflow.comm.values.refusal import Refusal, brief
from dataflow.comm.values.shapes import require_list, require_mapping, require_text

_NOT_STATE = "__orig_class__"  # typing's note that Box[int](1) was made as a Box[int]


# Classes by name


def class_name(kind: type) -> str:
    """How a class is named in encoded data; TypeError if another process could not find it."""
    name = _full_name(kind)
    if _look_up(name) is not kind:
        raise TypeError(
            f"{name.replace(':', '.')} is another class than the one of a value that was to be sent, or there is none "
            "of that name: another worker finds classes by their names, so define it once, at the top of its module"
        )
    return name


@functools.lru_cache(1024)
def _full_name(kind: type) -> str:
    if "<locals>" in kind.__qualname__:
        raise TypeError(
            f"{kind.__qualname__} is defined inside a function, where another worker cannot find it: "
            "define the class at the top of its module"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


@functools.lru_cache(1024)
def _parts(name: str) -> tuple[str, tuple[str, ...]]:
    module, _, path = name.partition(":")
    return module, tuple(path.split("."))


def _look_up(name: str) -> object:
    module, path = _parts(name)
    found: object = sys.modules.get(module)
    for part in path:
        # Not getattr: a module may import things when it is asked for what it does not have.
        found = getattr(found, "__dict__", {}).get(part)
    return found


def find_class(name: object, base: type | None) -> type:
    """The class of that name in the modules that are imported already: a subclass of `base`, or a dataclass."""
    found = _look_up(str(name))
    if not isinstance(found, type):
        raise ValueError(f"the class {brief(name)} is not known here: import its module before data arrives")
    if base is None and not is_record(found):
        raise ValueError(f"{name!r} is not a dataclass")
    if base is not None and not issubclass(found, base):
        raise ValueError(f"{name!r} is not a kind of {base.__name__}")
    if base is tuple and not hasattr(found, "_fields"):
        raise ValueError(f"{name!r} is not a named tuple")
    return found


# Dataclasses


class Layout(NamedTuple):
    """Where the instances of a dataclass keep their state."""

    names: tuple[str, ...]  # of its fields
    slots: dict[str, MemberDescriptorType]  # by name, what reads and writes it
    in_dict: bool  # whether all attributes are in __dict__, and setting a field calls nothing of the program's
    in_slots: bool  # whether the fields are the slots, and there is no __dict__


def is_record(kind: type) -> bool:
    """Whether instances of a class travel as the values of their fields: dataclasses, but not enums made of one."""
    return dataclasses.is_dataclass(kind) and not issubclass(kind, enum.Enum)


@functools.lru_cache(1024)
def layout(kind: type) -> Layout:
    """Where a dataclass keeps its state; TypeError if some of it is in a base class written in C."""
    try:
        object.__new__(kind)
    except TypeError:
        raise TypeError(
            f"{kind.__qualname__} is a dataclass and something else as well ({_native_base(kind).__name__}), whose "
            "state cannot be sent to another worker: have one as a field of the other"
        ) from None
    names = tuple(field.name for field in dataclasses.fields(kind))
    has_dict = kind.__dictoffset__ != 0
    slots = {name: slot for base in kind.__mro__[::-1] for name, slot in _slots(base)}
    found = {name: _of_class(kind, name) for name in names}
    plain = not any(hasattr(what, "__set__") for what in found.values())
    return Layout(names, slots, has_dict and not slots and plain, not has_dict and slots == found)


def _of_class(kind: type, name: str) -> object:
    """What a class has under a name, without asking it."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _slots(base: type) -> Iterator[tuple[str, MemberDescriptorType]]:
    """The slots that a class itself has, by name."""
    for name, what in vars(base).items():
        if type(what) is MemberDescriptorType and what.__objclass__ is base:
            yield name, what


def _native_base(kind: type) -> type:
    return next(base for base in kind.__mro__ if not base.__flags__ & 1 << 9)  # not a heap type: written in C


def field_columns(kind: type, values: Sequence[object]) -> list[list[object]] | None:
    """The values of each field of many instances; None if some have other attributes than their fields."""
    names, _, in_dict, in_slots = layout(kind)
    if not names:
        return None
    try:
        if in_dict:
            dicts = list(map(vars, values))
            if set(map(len, dicts)) != {len(names)}:
                return None
            return [[each[name] for each in dicts] for name in names]
        if in_slots:
            return [list(map(attrgetter(name), values)) for name in names]
    except (KeyError, AttributeError):  # a field that is not there
        pass
    return None


def field_values(value: object, kind: type) -> list[object] | None:
    """The values of an instance's fields, in order; None if it has other attributes than these, or lacks one."""
    names, _, in_dict, in_slots = layout(kind)
    try:
        if in_dict:
            attributes = vars(value)
            return [attributes[name] for name in names] if len(attributes) == len(names) else None
        if in_slots:
            return [getattr(value, name) for name in names]
    except (KeyError, AttributeError):
        pass
    return None


def attributes_of(value: object) -> tuple[dict[str, object], dict[str, object]]:
    """All attributes of an instance: those in its __dict__, and those in slots."""
    kind: type = type(value)
    inside: dict[str, object] = dict(vars(value)) if kind.__dictoffset__ else {}
    inside.pop(_NOT_STATE, None)
    slots: dict[str, object] = {}
    for name, slot in layout(kind).slots.items():
        with suppress(AttributeError):  # a slot in which nothing is
            slots[name] = slot.__get__(value)
    return inside, slots


def of_record(value: object) -> list[object]:
    """An instance of a dataclass: its class, and the values of its fields or all of its attributes."""
    kind: type = type(value)
    name = class_name(kind)
    values = field_values(value, kind)
    if values is not None:
        return [name, values]
    inside, slots = attributes_of(value)
    names = layout(kind).names
    if layout(kind).in_dict and inside.keys() == set(names):
        return [name, [inside[field] for field in names]]
    return [name, None, inside, slots]


def to_record(plain: object) -> object:
    """The instance that `of_record` was given."""
    name, values, *rest = require_list(plain)
    kind = find_class(name, None)
    if values is not None:
        return make_record(kind, require_list(values))
    inside, slots = map(require_mapping, rest)
    made: object = object.__new__(kind)
    if inside:
        vars(made).update({require_text(name): value for name, value in inside.items()})
    known = layout(kind).slots
    for slot, value in slots.items():
        if type(slot) is not str or slot not in known:
            raise ValueError(f"{kind.__name__} has no slot {brief(slot)} here")
        known[slot].__set__(made, value)
    return made


def make_record(kind: type, values: Sequence[object]) -> object:
    """An instance with these values in its fields. Its constructor is not called: it was, where the value was made."""
    names, _, in_dict, in_slots = layout(kind)
    if len(names) != len(values):
        raise ValueError(f"{kind.__name__} has {len(names)} fields here and {len(values)} where it came from")
    if not (in_dict or in_slots):
        raise ValueError(f"{kind.__name__} keeps its fields elsewhere than where it came from")
    made: object = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


# Named tuples and enums


def of_named_tuple(value: tuple[object, ...]) -> list[object]:
    """A named tuple: its class, and its items."""
    if getattr(value, "__dict__", None):
        raise Refusal(value, f"It has attributes ({', '.join(vars(value))}) besides its items: send a dataclass.")
    return [class_name(type(value)), list(tuple.__iter__(value))]


def to_named_tuple(plain: object) -> object:
    """The named tuple that `of_named_tuple` was given."""
    name, items = require_list(plain, 2)
    return tuple.__new__(find_class(name, tuple), require_list(items))


def of_enum(value: enum.Enum) -> list[object]:
    """A member of an enum: its class, and its name; for a flag its value, since combinations have no name."""
    kind = type(value)
    if isinstance(value, enum.Flag):
        return [class_name(kind), value._value_]
    if kind._member_map_.get(value._name_) is not value:
        raise Refusal(value, f"It is not a member of {kind.__qualname__} by name: send its value.")
    return [class_name(kind), value._name_]


def to_enum(plain: object) -> enum.Enum:
    """The member that `of_enum` was given."""
    name, member = require_list(plain, 2)
    kind = find_class(name, enum.Enum)
    assert issubclass(kind, enum.Enum)
    return kind(member) if issubclass(kind, enum.Flag) else kind[require_text(member)]
