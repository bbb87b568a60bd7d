"""A batch of columns as buffers, and back: neither copied when it is sent nor when it is received.

A numpy column is one buffer. An Arrow column is up to three (which values are there, offsets, bytes), and is checked in
full when it is received: a peer's offsets may point anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dataflow import codec
from dataflow.columns import Columns
from dataflow.columns.zones import Array, checked_zone, with_zone, zone_of

_ARROW = ("string", "large_string", "binary", "large_binary")

Buffer = bytes | memoryview


def encode_columns(batch: Columns, buffers: list[Buffer]) -> list[Any]:
    """Adds the buffers of a batch; its shape for the header: [rows, [name, type, buffers], ...].

    A type is the name of a dtype, [that name, a time zone], or the name of a type of Arrow's.
    """
    shapes: list[Any] = [len(batch)]
    for name, column in batch.columns.items():
        if isinstance(column, np.ndarray):
            zone = zone_of(column)
            kind = codec.dtype_name(column.dtype)
            shapes.append([name, kind if zone is None else [kind, zone], 1])
            buffers.append(np.ascontiguousarray(column).view(np.uint8).data)
        else:
            pieces = _arrow_buffers(column)
            shapes.append([name, str(column.type), [piece is not None for piece in pieces]])
            buffers.extend(memoryview(piece) for piece in pieces if piece is not None)
    return shapes


def decode_columns(shapes: Any, buffers: list[memoryview], first: int) -> Columns:
    """The batch whose buffers begin with the first-th."""
    rows, *columns = shapes
    if type(rows) is not int or rows < 0:
        raise ValueError(f"a batch of {rows!r} rows")
    arrays: dict[str, Any] = {}
    for name, kind, layout in columns:
        if type(kind) is str and kind in _ARROW:
            pieces = [buffers[first + sum(layout[:i])] if there else None for i, there in enumerate(layout)]
            arrays[name] = _arrow_array(kind, rows, pieces)
            first += sum(map(bool, layout))
        else:
            arrays[name] = _numpy_array(kind, buffers[first])
            first += 1
        if len(arrays[name]) != rows:
            raise ValueError(f"column {name!r} has {len(arrays[name])} of {rows} rows")
    return Columns.trusted(arrays, rows)


def _numpy_array(kind: Any, buffer: memoryview) -> Array:
    """`kind` is the name of a dtype, or [that name, a time zone]."""
    if type(kind) is not list:
        return np.frombuffer(buffer, codec.safe_dtype(kind))
    name, zone = kind
    array = with_zone(np.frombuffer(buffer, codec.safe_dtype(name)), checked_zone(zone))
    if zone_of(array) is None:
        raise ValueError(f"a column of {array.dtype} in the time zone {zone}")
    return array


def _arrow_buffers(column: Any) -> list[Any]:
    import pyarrow

    if column.offset or column.nbytes * 2 < column.get_total_buffer_size():  # a part of something larger
        column = pyarrow.concat_arrays([column, column.slice(0, 0)])
    return list(column.buffers())


def _arrow_array(kind: str, rows: int, pieces: list[Any]) -> Any:
    import pyarrow

    if len(pieces) != 3:
        raise ValueError(f"a column of strings in {len(pieces)} buffers")
    wrapped = [None if piece is None else pyarrow.py_buffer(piece) for piece in pieces]
    array = pyarrow.Array.from_buffers(pyarrow.type_for_alias(kind), rows, wrapped)
    array.validate(full=True)
    return array
