"""Migrate the state of an operator: begin, say how far it is, give up the rest. Worker 0 steers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.asking.answers.get import find_operator
from dataflow.asking.messages import Arguments, Question, Refused, text_of
from dataflow.asking.run import NamedRun
from dataflow.build.hooks import Movement

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

ACTIONS = ("begin", "dry", "look", "cancel")


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """What worker 0 says."""
    return await run.ask_worker(0, Question("migrate", arguments))


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """How far the migration is, as a mapping."""
    _, operator = find_operator(pump, text_of(arguments, "operator"))
    steering, action = operator.steering, text_of(arguments, "action")
    if steering is None:
        raise Refused(f"the state of {operator.name} stays on its worker: build it with megaphone to move it")
    if action not in ACTIONS:
        raise Refused(f"{action!r} is none of {', '.join(ACTIONS)}")
    if action in ("begin", "dry"):
        to, strategy = text_of(arguments, "to"), text_of(arguments, "strategy")
        movement: Movement | None = steering.migrate(to, strategy, dry=action == "dry")
    else:
        movement = steering.cancel() if action == "cancel" else steering.last
    if movement is None:
        raise Refused(f"nobody has asked for a migration of {operator.name}")
    return movement
