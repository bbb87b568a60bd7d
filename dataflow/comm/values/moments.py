"""Dates and times as plain data: with the zone itself, not with the offset that it happens to have, and with `fold`.

A zone travels by its key ("Europe/Berlin") and is looked up in the tables of the host that receives it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from typing import TypeAlias
from zoneinfo import ZoneInfo

from dataflow.comm.values.refusal import Refusal, brief
from dataflow.comm.values.shapes import require_integer, require_list, require_text

Moment: TypeAlias = str | list[object]
"""The ISO form; or, for what that does not say, [ISO form without a zone, fold, None or what the zone is as plain
data]."""

_ZERO = timedelta(0)
_KEY = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,3}")  # no dots: ZoneInfo may look for a module of that name


def of_moment(moment: datetime | time) -> Moment:
    """A date with a time of day, or a time of day."""
    zone = moment.tzinfo
    if not moment.fold and (zone is None or zone is UTC):
        return moment.isoformat()
    text = moment.replace(tzinfo=None, fold=0).isoformat()
    if zone is None:
        return [text, moment.fold, None]
    if type(zone) is timezone:
        return [text, moment.fold, of_offset(zone)]
    if type(zone) is ZoneInfo:
        return [text, moment.fold, of_zone(zone)]
    raise Refusal(
        moment,
        f"Its zone is a {type(zone).__module__}.{type(zone).__qualname__}, which cannot be sent: "
        "use `zoneinfo.ZoneInfo` or `datetime.timezone`.",
    )


def to_datetime(plain: object) -> datetime:
    """The date and time that `of_moment` was given."""
    if type(plain) is str:
        return datetime.fromisoformat(plain)
    text, fold, zone = _parts(plain)
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold)


def to_time(plain: object) -> time:
    """The time of day that `of_moment` was given."""
    if type(plain) is str:
        return time.fromisoformat(plain)
    text, fold, zone = _parts(plain)
    return time.fromisoformat(text).replace(tzinfo=zone, fold=fold)


def _parts(plain: object) -> tuple[str, int, tzinfo | None]:
    text, fold, zone = require_list(plain, 3)
    return require_text(text), require_integer(fold), _zone(zone)


def _zone(plain: object) -> tzinfo | None:
    if plain is None:
        return None
    return to_zone(plain) if type(plain) is str else to_offset(plain)


def of_offset(zone: timezone) -> list[object]:
    """A fixed offset, with its name if it was given one."""
    if zone is UTC:
        return [0, 0, 0]
    offset, *names = zone.__getinitargs__()  # type: ignore[attr-defined]  # what its repr and its pickle are made of
    return [offset.days, offset.seconds, offset.microseconds, *names]


def to_offset(plain: object) -> timezone:
    """The zone that `of_offset` was given."""
    days, seconds, microseconds, *names = require_list(plain)
    offset = timedelta(require_integer(days), require_integer(seconds), require_integer(microseconds))
    return UTC if offset == _ZERO and not names else timezone(offset, *map(require_text, names))


def of_zone(zone: ZoneInfo) -> str:
    """The key of a zone."""
    try:
        zone.__reduce__()  # raises for a zone that was read from a file, whatever key it was given
        key = zone.key
    except Exception:
        key = None
    if key is None or not _KEY.fullmatch(key):
        raise Refusal(zone, 'Only zones that were made by their key can be sent, such as ZoneInfo("Europe/Berlin").')
    return key


def to_zone(key: object) -> ZoneInfo:
    """The zone of that key."""
    if type(key) is not str or not _KEY.fullmatch(key):
        raise ValueError(f"{brief(key)} is not the key of a time zone")
    try:
        return ZoneInfo(key)
    except KeyError:
        raise ValueError(f"the time zone {key!r} is not known on this host: install tzdata") from None
