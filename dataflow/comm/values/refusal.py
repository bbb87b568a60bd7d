"""What a user is told about a value that cannot travel: which type it has, and what to send instead."""

from __future__ import annotations

import datetime
import enum

import numpy as np

_PLAIN = "numbers, strings, bytes, lists, tuples, sets, dictionaries, dates, numpy scalars, dataclasses or enums"
_BASES = (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)


class Refusal(TypeError):
    """A value that cannot travel. `culprit` is that value, so that whoever holds it can say where it was."""

    def __init__(self, culprit: object, advice: str) -> None:
        kind = type(culprit)
        super().__init__(f"a {kind.__name__} cannot be sent to another worker: {brief(culprit)}. {advice}")
        self.culprit = culprit

    def held_by(self, name: str, holder: object) -> None:
        """Says that the value was an attribute of another."""
        self.args = (f"{self.args[0]} It is the attribute {name!r} of a {type(holder).__qualname__}.",)
        self.culprit = holder


def refuse(value: object) -> Refusal:
    """The refusal of a value of a type that is not known."""
    return Refusal(value, _advice(value))


def _advice(value: object) -> str:
    if isinstance(value, np.ma.MaskedArray):
        return "Fill in what is masked (`array.filled(...)`), or send `array.data` and `array.mask` as two arrays."
    if isinstance(value, np.ndarray):
        return "Send a plain array: `numpy.asarray(array)`."
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        return "Send columns: `dataflow.columns.Columns(frame)`."
    if isinstance(value, datetime.tzinfo):
        return "Use a zone of `zoneinfo.ZoneInfo` or a `datetime.timezone`."
    if isinstance(value, datetime.datetime):
        return "Send a plain datetime (`to_pydatetime()` of a pandas Timestamp)."
    if not isinstance(value, enum.Enum):
        for base in _BASES:
            if isinstance(value, base):
                return f"Send a plain {base.__name__}, or a dataclass that has it and what belongs to it as fields."
    return f"Send plain data: {_PLAIN}."


def brief(value: object) -> str:
    """A value as a person can read it in an error: not a whole book."""
    try:
        text = repr(value)
    except Exception as error:  # the program's: it must not hide what is wrong with the value
        return f"<a {type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= 200 else f"{text[:200]}..."
