"""A batch of columns as buffers, and back: neither copied when it is sent nor when it is received.

A numpy column is one buffer. An Arrow column is up to three (which values are there, offsets, bytes), and is checked in
full when it is received: a peer's offsets may point anywhere.

Columns that are a value among others (a result of main, a record that is a batch, an event of a capture) are packed
with them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dataflow.columns import Columns
from dataflow.columns.column import Array, ArrowArray, ArrowBuffer, Column
from dataflow.columns.zones import Zoned, checked_zone, plain, with_zone, zone_of
from dataflow.comm import codec
from dataflow.comm.values import arrays
from dataflow.comm.values.refusal import Refusal
from dataflow.comm.values.shapes import require_bytes, require_list
from dataflow.text import show

_ARROW = ("string", "large_string", "binary", "large_binary")

Buffer = bytes | memoryview


def encode_columns(batch: Columns, buffers: list[Buffer]) -> list[object]:
    """Adds the buffers of a batch; its shape for the header: [rows, [name, type, buffers], ...].

    A type is the name of a dtype, [that name, a time zone], or the name of one of Arrow's types. TypeError for rows
    without columns: they would be a number, and whoever receives a number cannot tell what it costs.
    """
    shapes: list[object] = [len(batch)]
    if len(batch) and not batch.names:
        raise TypeError(
            f"{len(batch):,} rows without columns cannot be sent to another worker: select at least one column"
        )
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


def decode_columns(shapes: list[object], buffers: Iterator[memoryview]) -> Columns:
    """The batch whose buffers come next. ValueError if there is no such batch."""
    rows, *columns = shapes
    if type(rows) is not int or rows < 0 or (rows and not columns):
        raise ValueError(f"{show(rows)} rows in {len(columns)} columns")
    arrays: dict[str, Column] = {}
    for column in columns:
        name, kind, layout = require_list(column, 3)
        if type(name) is not str or name in arrays:
            raise ValueError(f"a column with the name {show(name)}, or two of them")
        if type(kind) is str and kind in _ARROW:
            arrays[name] = _arrow_array(kind, rows, _pieces(layout, buffers))
        elif layout != 1:
            raise ValueError(f"a column of numbers in {show(layout)} buffers")
        else:
            arrays[name] = _numpy_array(kind, _next(buffers))
        if len(arrays[name]) != rows:
            raise ValueError(f"column {show(name)} has {len(arrays[name])} of {rows} rows")
    return Columns.trusted(arrays, rows)


def _pieces(layout: object, buffers: Iterator[memoryview]) -> list[memoryview | None]:
    if type(layout) is not list or len(layout) != 3 or not all(type(there) is bool for there in layout):
        raise ValueError(f"a column of strings in {show(layout)} buffers")
    return [_next(buffers) if there else None for there in layout]


def _next(buffers: Iterator[memoryview]) -> memoryview:
    buffer = next(buffers, None)
    if buffer is None:
        raise ValueError("a buffer is missing")
    return buffer


def _numpy_array(kind: object, buffer: memoryview) -> Array:
    """`kind` is the name of a dtype, or [that name, a time zone]."""
    if type(kind) is not list:
        return np.frombuffer(buffer, codec.safe_dtype(kind))
    name, zone = require_list(kind, 2)
    array = with_zone(np.frombuffer(buffer, codec.safe_dtype(name)), checked_zone(zone))
    if zone_of(array) is None:
        raise ValueError(f"a column of {array.dtype} in the time zone {show(zone)}")
    return array


def _arrow_buffers(column: ArrowArray) -> list[ArrowBuffer | None]:
    import pyarrow

    if column.offset or column.nbytes * 2 < column.get_total_buffer_size():  # a part of something larger
        column = pyarrow.concat_arrays([column, column.slice(0, 0)])
    return list(column.buffers())


def _arrow_array(kind: str, rows: int, pieces: list[memoryview | None]) -> ArrowArray:
    import pyarrow

    wrapped = [None if piece is None else pyarrow.py_buffer(piece) for piece in pieces]
    array: ArrowArray = pyarrow.Array.from_buffers(pyarrow.type_for_alias(kind), rows, wrapped)
    array.validate(full=True)
    return array


def _of_columns(batch: Columns) -> list[object]:
    buffers: list[Buffer] = []
    shapes = encode_columns(batch, buffers)
    return [shapes, [bytes(buffer) for buffer in buffers]]


def _to_columns(plain: object) -> Columns:
    shapes, buffers = map(require_list, require_list(plain, 2))
    return decode_columns(shapes, iter([memoryview(bytearray(require_bytes(buffer))) for buffer in buffers]))


def _of_zoned(array: Zoned) -> list[object]:
    zone = zone_of(array)
    if zone is None:  # what numpy made of moments: it is a plain array, but for its class
        raise Refusal(array, "Send a plain array: `numpy.asarray(array)`.")
    return [zone, arrays.of_array(plain(array))]


def _to_zoned(content: object) -> Zoned:
    zone, array = require_list(content, 2)
    made = with_zone(arrays.to_array(array), checked_zone(zone))
    if not isinstance(made, Zoned):
        raise ValueError(f"an array of {made.dtype} in the time zone {show(zone)}")
    return made


codec.register(40, Columns, _of_columns, _to_columns)
codec.register(41, Zoned, _of_zoned, _to_zoned)
