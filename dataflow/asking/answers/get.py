"""The state of a key, read while the stream flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.asking.messages import Arguments, Question, Refused, text_of
from dataflow.asking.run import NamedRun
from dataflow.build.hooks import Stateful
from dataflow.comm import codec

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """What the worker says that has the key; Refused if no worker does."""
    asked = {"operator": text_of(arguments, "operator"), "key": arguments.get("key")}
    answers = await run.ask_all(Question("get", asked))
    found = [answer for answer in answers.values() if isinstance(answer, dict) and answer["found"]]
    if found:
        return found[0]
    there = [answer for answer in answers.values() if isinstance(answer, dict)]
    for refused in answers.values():
        if isinstance(refused, Refused):  # an operator that nobody knows, or a worker on another host
            raise refused
    moving = any(answer["moving"] for answer in there)
    hint = ": its bins move at the moment, and it may be on its way; ask again" if moving else ""
    raise Refused(f"{asked['operator']} has no state for the key {asked['key']!r}{hint}")


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """Whether the key is here, its shard, its state, and as of which time."""
    dataflow, operator = find_operator(pump, text_of(arguments, "operator"))
    if operator.lookup is None:
        raise Refused(f"{operator.name} does not let single keys be looked at")
    key = arguments.get("key")
    try:
        looked = operator.lookup.look(key)
    except (TypeError, ValueError) as error:
        raise Refused(f"{key!r} cannot be a key of {operator.name}: {error}") from None
    passed = pump.meter.sampler(dataflow).lag()[1]
    last = None if operator.steering is None else operator.steering.last
    return {
        "worker": pump.index,
        "found": looked.found,
        "shard": looked.shard,
        "bin": "" if operator.placement is None else operator.placement.group_name(looked.shard),
        "text": repr(looked.state),
        "value": _plain(looked.state),
        "before": "" if passed is None else str(passed),
        "moving": last is not None and last.under_way,
    }


def find_operator(pump: Pump, name: str) -> tuple[Dataflow, Stateful]:
    """The stateful operator of a name (`DATAFLOW/NAME` where several dataflows have it); Refused if there is none."""
    inside, slash, short = name.rpartition("/")
    for whole in (True, False):
        wanted = name if whole else short
        found = [
            (dataflow, wanted)
            for dataflow in pump.dataflows
            if (whole or dataflow.name == inside) and any(each.name == wanted for each in dataflow.hooks)
        ]
        if len(found) == 1:
            return found[0][0], found[0][0].hooks.named(wanted)
        if len(found) > 1:
            names = ", ".join(f"{dataflow.name}/{wanted}" for dataflow, _ in found)
            raise Refused(f"several dataflows have an operator {wanted!r}: say {names}")
        if not slash:
            break
    known = sorted({each.name for dataflow in pump.dataflows for each in dataflow.hooks})
    raise Refused(f"there is no stateful operator {name!r}; there are: {', '.join(known) or 'none'}")


def _plain(state: object) -> object:
    """The state as it can travel, or None: objects of the program's own classes are told as text only."""
    try:
        codec.encode(state)
    except (TypeError, ValueError):
        return None
    return state if isinstance(state, bool | int | float | str | bytes | list | tuple | dict | None) else None
