"""Logging by the standard library's `logging`, set up for a run: `run --log-level info`.

Each line says which worker, dataflow and operator it is from, whoever wrote it: when a record is made inside an
operator's step, that is found on the stack, so steps cost nothing for it. A line of code that says much is limited:
what is left out is counted, and the count is told with the next line. Loggers of the engine are below `dataflow`,
`megaphone` and `planners`; a program's own loggers are set up with them. Nothing is set up unless it is asked for.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType

LEVELS = ("debug", "info", "warning", "error", "critical")
FORMATS = ("text", "json")
MOST = 20  # lines of one line of code, each second
_PLACES = ("worker", "dataflow", "operator")


@dataclass
class ProcessWorker:
    """Which worker this process is, where each has one of its own."""

    index: int | None = None


this_process = ProcessWorker()


@dataclass
class Limit(logging.Filter):
    """Lets at most so many records of one line of code pass in each second."""

    most: int = MOST
    clock: Callable[[], float] = monotonic
    _seen: dict[tuple[str, int], list[float]] = field(default_factory=dict)  # since, how many, left out
    name: str = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it passes."""
        now = self.clock()
        entry = self._seen.setdefault((record.pathname, record.lineno), [now, 0, 0])
        if now - entry[0] >= 1.0:
            entry[0], entry[1] = now, 0
        entry[1] += 1
        if entry[1] > self.most:
            entry[2] += 1
            return False
        record.left_out = int(entry[2])
        entry[2] = 0
        return True


def place_of(frame: FrameType | None) -> dict[str, object]:
    """The worker, dataflow and operator whose step is on the stack, as far as there is one."""
    found: dict[str, object] = {} if this_process.index is None else {"worker": this_process.index}
    stepping = sys.modules.get("dataflow.run.stepping")  # whose import would take longer than a command may
    step = None if stepping is None else stepping.Stepping.run.__code__
    while frame is not None and step is not None:
        if frame.f_code is step:
            dataflow, number = frame.f_locals["self"], frame.f_locals["number"]
            operator = dataflow.operators[number].label
            return {"worker": dataflow.pump.index, "dataflow": dataflow.name, "operator": operator}
        frame = frame.f_back
    return found


class WithPlaces(logging.Filter):
    """Adds where a record is from. What `extra=` says counts."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets everything pass."""
        for name, value in place_of(sys._getframe(1)).items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def facts_of(record: logging.LogRecord) -> dict[str, object]:
    """Where a record is from, as far as that is known."""
    return {name: getattr(record, name) for name in _PLACES if hasattr(record, name)}


class TextLines(logging.Formatter):
    """Lines for people: `12:00:00 INFO planners.loop [worker 0, orders, totals (#3)] interval 7: stay: ...`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and a traceback if there is one."""
        facts = facts_of(record)
        parts = [f"worker {facts['worker']}"] if "worker" in facts else []
        parts += [str(facts[name]) for name in ("dataflow", "operator") if name in facts]
        where = f" [{', '.join(parts)}]" if parts else ""
        left = getattr(record, "left_out", 0)
        more = f" ({left} more like this were left out)" if left else ""
        when = self.formatTime(record, "%H:%M:%S")
        text = f"{when} {record.levelname} {record.name}{where} {record.getMessage()}{more}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonLines(logging.Formatter):
    """An object in JSON on each line, for those who collect logs."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        told: dict[str, object] = {
            "time": record.created, "level": record.levelname.lower(), "logger": record.name, **facts_of(record),
            "message": record.getMessage(),
        }  # fmt: skip
        if left := getattr(record, "left_out", 0):
            told["left_out"] = left
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


def begin_logging(wanted: str) -> None:
    """Sets up logging in this process and in those forked from it: "info", or "info json"; not if that is empty."""
    if not wanted:
        return
    level, _, kind = wanted.partition(" ")
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if kind == "json" else TextLines())
    handler.addFilter(Limit())
    handler.addFilter(WithPlaces())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
