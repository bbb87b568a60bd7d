"""Whether the progress that another worker reports fits this graph: its locations, and the times at each."""

from __future__ import annotations

from collections.abc import Iterable

from dataflow.errors import ProtocolError
from dataflow.progress.graph import Graph
from dataflow.progress.tracker import Change
from dataflow.text import show
from dataflow.time.order import Time
from dataflow.time.timestamp import Domain, Product

USUAL = 1 << 63  # integer times below this need no second look


class Validity:
    """Checks reports against one graph. O(1) for each change, and a comparison with the minimum where times are a
    user's own. A report that passes may still be false, but the tracker understands it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        levels = [graph.levels(location) for location in graph.locations]
        made: dict[tuple[Domain, ...], Domain] = {}
        for here in levels:
            if here not in made:
                made[here] = here[0] if len(here) == 1 else Product(*here)
        self._domains = [made[here] for here in levels]
        self._integers_only = graph.integers_only

    def require(self, sender: int, changes: Iterable[Change]) -> None:
        """ProtocolError if a change is at no location of this graph, or at a time of another type."""
        count = len(self._domains)
        plain = self._integers_only
        for (location, time), _ in changes:
            if not 0 <= location < count:
                raise ProtocolError(
                    f"worker {sender} tells of progress at location {location}, and this dataflow has {count}"
                )
            if not (plain and type(time) is int and 0 <= time < USUAL):  # nearly all are: a call costs as much again
                self.require_time(sender, location, time)

    def require_time(self, sender: int, location: int, time: Time) -> None:
        """ProtocolError if there cannot be such a time at a location."""
        domain = self._domains[location]
        try:
            fits = domain.holds(time)
        except Exception as error:  # of a user's class, whose fields are not what it expects
            why = f" ({type(error).__name__} when it is compared)"
        else:
            if fits:
                return
            why = ""
        where = self._graph.name(self._graph.locations[location])
        raise ProtocolError(f"worker {sender} sent {show(time)} for {where}, whose times are {domain.name}{why}")
