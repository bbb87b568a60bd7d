"""Patches where they are needed: workers in processes import modules afresh, so those of a test do not reach them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import dataflow


@dataclass(frozen=True)
class Patched:
    """A main that runs with other values of some variables, by their names ("module.variable")."""

    main: Callable[..., Awaitable[Any]]
    values: Mapping[str, Any]

    async def __call__(self, worker: dataflow.Worker, *args: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.values.items():
                patch.setattr(name, value)
            return await self.main(worker, *args)
