"""Users' own values, which pass through Megaphone without a look inside: the one place that calls them `Any`."""

from __future__ import annotations

from typing import Any, TypeAlias

from dataflow.state.store import Key as Key

Record: TypeAlias = Any
"""A record of rows: any object that can be sent to another worker."""

State: TypeAlias = Any
"""The state of a bin of rows: any object that can be sent to another worker."""
