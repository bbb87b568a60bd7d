"""Which room imports which: as it is (`edges`), as it may be (`rooms.ROOMS`), and in what they differ.

`python -m tests.house.layers` prints the imports as they are, in the form of the table.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tests.house.tree import ROOT, House, Import


@dataclass
class Door:
    """The rooms that a room imports: when it is loaded, and later on or for types only."""

    at_once: set[str] = field(default_factory=set)
    on_demand: set[str] = field(default_factory=set)


def table(text: str) -> dict[str, Door]:
    """Reads lines of `room: rooms imported at once | rooms imported on demand or for types`.

    >>> table("a.b: a.c a.d | a.e")
    {'a.b': Door(at_once={...}, on_demand={'a.e'})}
    """
    doors = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        room, _, rest = line.partition(":")
        at_once, _, on_demand = rest.partition("|")
        doors[room] = Door(set(at_once.split()), set(on_demand.split()))
    return doors


def room_of(module: str, rooms: dict[str, Door]) -> str | None:
    """The innermost room that a module is in. A package's own room is its `__init__` alone: new modules need a room."""
    parts = module.split(".")
    inside = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((room for room in inside if room in rooms and ("." in room or room == module)), None)


def homeless(house: House, rooms: dict[str, Door]) -> list[str]:
    """Modules that are in no room."""
    return [module for module in house.modules if room_of(module, rooms) is None]


def edges(house: House, rooms: dict[str, Door]) -> dict[tuple[str, str, bool], list[Import]]:
    """By room, imported room and whether at once: the imports. Those within a room are left out."""
    found: dict[tuple[str, str, bool], list[Import]] = defaultdict(list)
    for each in house.imports:
        target = each.imported
        while target and target not in house.modules:
            target = target.rpartition(".")[0]
        here, there = room_of(each.importer, rooms), room_of(target, rooms)
        if here is not None and there is not None and here != there:
            found[here, there, each.where == "module"].append(each)
    return found


def forbidden(house: House, rooms: dict[str, Door]) -> list[str]:
    """Imports that the table does not allow."""
    told = []
    for (here, there, at_once), imports in sorted(edges(house, rooms).items()):
        door = rooms[here]
        if there not in door.at_once and (at_once or there not in door.on_demand):
            how = "at once" if at_once else "on demand"
            places = ", ".join(f"{each.importer}:{each.line}" for each in imports)
            told.append(f"{here} may not import {there} {how}: {places}")
    return told


def unused(house: House, rooms: dict[str, Door]) -> list[str]:
    """What the table allows and no import needs: a door that could be shut."""
    found = edges(house, rooms)
    told = []
    for here, door in rooms.items():
        told += [f"{here} imports {there} nowhere" for there in door.at_once if (here, there, True) not in found]
        told += [
            f"{here} imports {there} nowhere on demand" for there in door.on_demand if (here, there, False) not in found
        ]
    return sorted(told)


def as_table(house: House, rooms: dict[str, Door]) -> str:
    """The imports as they are, in the form of the table."""
    doors: dict[str, Door] = {room: Door() for room in rooms}
    found = edges(house, rooms)
    for here, there, at_once in found:
        if at_once:
            doors[here].at_once.add(there)
        elif (here, there, True) not in found:
            doors[here].on_demand.add(there)
    return "\n".join(
        f"{room}: {' '.join(sorted(door.at_once))} | {' '.join(sorted(door.on_demand))}".rstrip("| ")
        for room, door in doors.items()
    )


if __name__ == "__main__":
    from tests.house.rooms import ROOMS

    print(as_table(House(ROOT), ROOMS))
