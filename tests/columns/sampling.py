"""How many random cases the tests of columns look at: few enough for all of them to take seconds."""

from __future__ import annotations

from hypothesis import settings

repeatable = settings(derandomize=True, deadline=None, database=None, max_examples=25)
