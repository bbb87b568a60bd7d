"""The shapes of plain data that another process sent: who decodes has an `object`, and requires what it must be."""

from __future__ import annotations

from dataflow.comm.values.refusal import brief


def require_bytes(data: object) -> bytes:
    """ValueError unless it is bytes."""
    if type(data) is not bytes:
        raise ValueError(f"{type(data).__name__} where bytes belong")
    return data


def require_text(text: object) -> str:
    """ValueError unless it is a string."""
    if type(text) is not str:
        raise ValueError(f"{brief(text)} where text belongs")
    return text


def require_integer(number: object) -> int:
    """ValueError unless it is an integer. (A bool is none, and neither is 1.0.)"""
    if type(number) is not int:
        raise ValueError(f"{brief(number)} where an integer belongs")
    return number


def require_list(plain: object, length: int | None = None) -> list[object]:
    """ValueError unless it is a list, and of that length if one is given."""
    if type(plain) is not list:
        raise ValueError(f"{type(plain).__name__} where a list belongs")
    if length is not None and len(plain) != length:
        raise ValueError(f"a list of {len(plain)} where one of {length} belongs")
    return plain


def require_mapping(plain: object) -> dict[object, object]:
    """ValueError unless it is a dictionary."""
    if type(plain) is not dict:
        raise ValueError(f"{type(plain).__name__} where a dictionary belongs")
    return plain
