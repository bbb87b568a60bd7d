"""Users' own values (`dataflow.values`), for those who handle keyed state."""

from dataflow.values import Key, Record, State, Value

__all__ = ["Key", "Record", "State", "Value"]
