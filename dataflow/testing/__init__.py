"""A test kit: workers in one process, every interleaving a seed, virtual time, late records, crashes and scaling.

docs/testing.md shows it.

- `simulating`: `simulate`, the seeded scheduler under which all of this runs.
- `playing`: what comes out of a few operators. `arrivals`: records out of order, and late ones.
- `rehearsals`: a whole program with sources and sinks, through crashes and changes of the number of workers.
"""

from dataflow.testing.arrivals import Arrivals, out_of_order
from dataflow.testing.playing import play
from dataflow.testing.rehearsals import KeptRows, Rehearsal
from dataflow.testing.simulating import Crashed, Mortal, Scheduler, Simulation, Starving, Watcher, simulate

__all__ = [
    "Arrivals",
    "Crashed",
    "KeptRows",
    "Mortal",
    "Rehearsal",
    "Scheduler",
    "Simulation",
    "Starving",
    "Watcher",
    "out_of_order",
    "play",
    "simulate",
]
