"""What all guests of a job are told: plain data, but for the parcel with main, which is opened where workers start."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from functools import partial

from dataflow.comm import codec
from dataflow.execute import Main
from dataflow.launch.parcel import attempt, packed, unpack
from dataflow.launch.process import Settings
from dataflow.launch.travel import cannot_travel
from dataflow.recovery.policy import Recovery
from dataflow.recovery.resume import require_visible


@dataclass(frozen=True, slots=True)
class GuestOrder:
    """What a guest needs to know besides its number and where everybody is."""

    secret: bytes  # of this job alone
    home: tuple[str, int] | None  # where the driver listens; None if guests cannot reach it
    argv: list[str]
    parcel: bytes
    settings: Settings
    recovery: Recovery | None
    wait: float  # seconds for all guests to be there
    join: tuple[str, int, int] | None = None  # of those who join: where guest 0 listens, and their first number

    def encode(self) -> bytes:
        """As bytes. ValueError if only this process can see where snapshots are kept."""
        recovery = None
        if self.recovery is not None:
            require_visible(self.recovery)
            recovery = {each.name: getattr(self.recovery, each.name) for each in fields(Recovery)}
        of = self.settings
        settings = [of.debug, of.limit, of.prefix, of.grace, of.patience, of.warn_after]
        home = None if self.home is None else list(self.home)
        join = None if self.join is None else list(self.join)
        return codec.encode([self.secret, home, self.argv, self.parcel, settings, recovery, self.wait, join])

    @classmethod
    def decode(cls, data: bytes) -> GuestOrder:
        """What was encoded."""
        secret, home, argv, parcel, settings, recovery, wait, join = codec.decode(data)
        debug, limit, prefix, grace, patience, warn_after = settings
        return cls(
            secret,
            None if home is None else (home[0], home[1]),
            argv,
            parcel,
            Settings(debug, limit, prefix, grace, patience, warn_after, terminal=False),
            None if recovery is None else Recovery(**recovery),
            wait,
            None if join is None else tuple(join),
        )


def pack_main(main: Main, args: tuple[object, ...]) -> bytes:
    """Main and what it uses, as bytes; CannotTravel names what cannot go."""
    try:
        with packed((main, args)) as fd, open(fd, "rb", closefd=False) as file:
            file.seek(0)
            return file.read()
    except OSError:
        raise  # there is no room for it
    except Exception as error:  # whatever the program's own objects raise
        raise cannot_travel(main, args, error, attempt) from error


class ShippedMain:
    """Stands for main where its parcel is not opened: in the supervisor. Pickled, it becomes main itself.

    So the parcel travels within another one to the zygote, which opens both: there the program's modules are imported.
    """

    def __init__(self, parcel: bytes) -> None:
        self._parcel = parcel

    async def __call__(self, *_: object) -> None:
        """Never called: whoever could call it has main in its place."""
        raise AssertionError("the parcel was not opened")

    def __reduce__(self) -> tuple[Callable[[bytes], Callable[..., Awaitable[object]]], tuple[bytes]]:
        return open_main, (self._parcel,)


def open_main(parcel: bytes) -> Callable[..., Awaitable[object]]:
    """Main, with its arguments. The bytes came from the driver, by the way that Spark brings its own functions."""
    fd = os.memfd_create("dataflow")
    with open(fd, "wb", closefd=False) as file:
        file.write(parcel)
    main, args = unpack(fd)
    return partial(_call, main, args)


async def _call(main: Main, args: tuple[object, ...], worker: object) -> object:
    return await main(worker, *args)
