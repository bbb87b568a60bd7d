"""What a user says about recovery: where snapshots are kept, how often, and when to give up."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from dataflow.recovery.storage import Storage, check_address


@dataclass(frozen=True)
class Recovery:
    """Snapshots, and going on from them: `dataflow.execute(main, recovery=dataflow.Recovery("state/", every=5))`.

    `where`: a folder, `s3://bucket/prefix` or another object store's address, `memory://NAME` within one process.
    `every`: seconds between snapshots. `keep`: how many are kept. `restarts`: how often workers that fail are replaced
    within `window` seconds, before the run fails. `replace`: whether a worker whose process dies is replaced; if not,
    the others go on without it, down to one. `give_up_after`: seconds without a snapshot, while one is tried, after
    which that is an error. `fresh`: starts from the beginning; what was saved is given up. `drop`: names of operators
    whose saved state is given up because the program does not have them any more. `start_from`: a savepoint to start
    from, `NAME` or `WHERE#NAME`, unless this place has snapshots already that came from it.

    All but a storage of your own as `where` is plain data, and travels to workers.
    """

    where: str | os.PathLike[str] | Storage
    every: float = 10.0
    keep: int = 3
    restarts: int = 5
    window: float = 600.0
    give_up_after: float = 600.0
    fresh: bool = False
    drop: tuple[str, ...] = ()
    start_from: str = ""
    replace: bool = True

    def __post_init__(self) -> None:
        checked: dict[str, object] = {
            "where": _place(self.where),
            "every": _seconds("every", self.every, "a snapshot is made"),
            "keep": _count("keep", self.keep, 1),
            "restarts": _count("restarts", self.restarts, 0),
            "window": _seconds("window", self.window, "a restart is forgotten"),
            "give_up_after": _seconds("give_up_after", self.give_up_after, "it is an error to have no snapshot"),
            "drop": _names("drop", self.drop),
        }
        for name, kind in (("fresh", bool), ("start_from", str), ("replace", bool)):
            if type(getattr(self, name)) is not kind:
                raise TypeError(f"{name}= is a {kind.__name__}, not {getattr(self, name)!r}")
        if self.fresh and self.start_from:
            raise ValueError("fresh=True starts from the beginning, and start_from= from a savepoint: say one of them")
        for name, value in checked.items():
            object.__setattr__(self, name, value)  # frozen for everybody else


def as_recovery(given: str | os.PathLike[str] | Recovery | None) -> Recovery | None:
    """What `recovery=` was given: a place alone means the rest as it is by default."""
    if given is None or isinstance(given, Recovery):
        return given
    if not isinstance(given, str | os.PathLike):
        raise TypeError(
            f"recovery= is where snapshots are kept (a folder, s3://bucket/prefix), or a dataflow.Recovery, and not "
            f"{given!r}"
        )
    return Recovery(given)


def _place(where: str | os.PathLike[str] | Storage) -> str | Storage:
    """Folders become absolute: workers may have another current one."""
    if not isinstance(where, str | os.PathLike):
        if not hasattr(where, "put"):
            raise TypeError(
                f"snapshots are kept in a folder, or at an address such as s3://bucket/prefix, not {where!r}"
            )
        return where
    text = check_address(where)
    return text if "://" in text and isinstance(where, str) else os.path.abspath(os.path.expanduser(text))


def _seconds(name: str, value: float, what: str) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{name}= is a number of seconds, not {value!r}")
    if not isfinite(value) or value <= 0:
        raise ValueError(f"{name}= says after how many seconds {what}: more than 0, not {value!r}")
    return float(value)


def _count(name: str, value: int, least: int) -> int:
    if type(value) is not int:
        raise TypeError(f"{name}= is a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name}= must be at least {least}, not {value}")
    return value


def _names(name: str, value: Iterable[str]) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(type(each) is str for each in names) or "" in names:
        raise TypeError(f"{name}= names operators, such as ('totals',), not {value!r}")
    return names
