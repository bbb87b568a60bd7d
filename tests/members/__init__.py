"""Workers that join and leave: random programs under the seeded scheduler against plain Python, a checker of frontiers,
rules broken on purpose, and real processes."""
