"""Where the progress of experiments is shown."""

import io
import time
from collections.abc import Callable
from typing import TextIO

from megaphone.harness.progress import ProgressBar


class Display:
    """Where progress is shown. Without a stream it is shown nowhere, which is what tests and libraries want."""

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        redraw: float = 0.1,
        remind: float = 10.0,
    ) -> None:
        self._stream = stream or io.StringIO()
        self._clock = clock
        self._redraw = redraw
        self._remind = remind

    def progress(self, label: str, total: int) -> ProgressBar:
        return ProgressBar(label, total, self._stream, self._clock, redraw=self._redraw, remind=self._remind)
