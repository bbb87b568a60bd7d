"""Ways to look inside F of an operator while it runs, for tests that follow the protocol step by step."""

from __future__ import annotations

from typing import Any

import trio

from megaphone.router.routing import Router


def operator_named(scope: Any, name: str) -> Any:
    """An operator of a dataflow by its name."""
    (found,) = (operator for operator in scope.dataflow.operators if operator.name == name)
    return found


def router_of(scope: Any, name: str) -> Router:
    """The F of a migratable operator on this worker."""
    router = operator_named(scope, f"{name} F").step.__self__
    assert isinstance(router, Router)
    return router


async def quiet() -> None:
    """Waits until nothing can happen any more: the virtual clock goes on only then. All workers wait alike."""
    await trio.sleep(1)


def frontier(of: Any) -> list[Any]:
    """The elements of a port's or probe's frontier."""
    return sorted(of.frontier)
