"""Random control streams: updates by hand from any worker and any time ahead, or a controller's strategies."""

from __future__ import annotations

from random import Random

from tests.fuzz.description import Control, Update

STRATEGIES = 4


def random_control(chance: Random, peers: int, epochs: int, keys: list[int], least: int) -> Control:
    """A control stream; `keys` are those that may be pinned, `least` the least logarithm of the number of bins."""
    bins = 1 << chance.randint(least, 4)
    if chance.random() < 0.3:
        return Control(bins, tuple(_migrations(chance, peers, epochs, bins, keys)), True, chance.choice((0, 0, 1, 3)))
    updates = []
    for worker in range(peers):
        for epoch in range(epochs):
            for _ in range(chance.choice((0, 0, 1, 2))):
                at = epoch + chance.choice((0, 0, 1, 3))
                updates.append(Update(worker, epoch, at, _said(chance, peers, bins, keys)))
    return Control(bins, tuple(updates))


def _said(chance: Random, peers: int, bins: int, keys: list[int]) -> tuple[object, ...]:
    what = chance.choice(("move", "moves", "assign", "pin", "pin", "unpin") if keys else ("move", "moves", "assign"))
    if what == "move":
        return what, chance.randrange(bins), chance.randrange(peers)
    if what == "moves":
        some = sorted(chance.sample(range(bins), chance.randint(1, bins)))
        return what, tuple(some), tuple(chance.randrange(peers) for _ in some)
    if what == "assign":
        return what, tuple(chance.randrange(peers) for _ in range(bins))
    key = chance.choice(keys)
    return (what, key, chance.randrange(peers)) if what == "pin" else (what, key)


def _migrations(chance: Random, peers: int, epochs: int, bins: int, keys: list[int]) -> list[Update]:
    made = []
    for epoch in range(epochs):
        if chance.random() < 0.5:
            to = tuple(chance.randrange(peers) for _ in range(bins))
            pins = {chance.choice(keys): chance.choice((None, chance.randrange(peers))) for _ in range(2) if keys}
            made.append(Update(0, epoch, epoch, ("migrate", to, chance.randrange(STRATEGIES), tuple(pins.items()))))
    return made
