"""The arrays that keyed state consists of, by name: what compiled code and its callers agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
"""State itself, 64 bits at a time; also keys and hashes."""
Meta: TypeAlias = NDArray[np.int32]
"""Four numbers for each bin: see `dataflow.state.memory.allocation`."""
Ctl: TypeAlias = NDArray[np.int64]
"""What else the kernels remember of an array of segments: see there."""
Ints: TypeAlias = NDArray[np.int64]
"""Numbers of rows and bins, times and amounts."""
Flags: TypeAlias = NDArray[np.bool_]
"""One truth for each bin, segment or key."""
Int: TypeAlias = int | np.int64
"""One number: compiled code has it in 64 bits."""
Word: TypeAlias = int | np.uint64
"""The same without a sign: a hash, a shift, a place that compiled code indexes with."""
Truth: TypeAlias = bool | np.bool_
"""What a comparison of such numbers gives."""
Bins: TypeAlias = NDArray[np.integer]
"""Numbers of bins, of any width."""
Values: TypeAlias = NDArray[np.generic]
"""A column of a record's values, of whatever type was declared."""
Touch: TypeAlias = Callable[[Iterable[int]], None]
"""Called with bins that are about to change: what a snapshot wants of them is copied first."""
