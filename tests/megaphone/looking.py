"""Ways to look inside F and S of an operator while it runs, for tests that follow the protocol step by step."""

from __future__ import annotations

from typing import Any

import trio

import dataflow
from megaphone.routing import Router


def operator_named(scope: Any, name: str) -> Any:
    """An operator of a dataflow by its name."""
    (found,) = (operator for operator in scope.dataflow.operators if operator.name == name)
    return found


def router_of(scope: Any, name: str) -> Router:
    """The F of a migratable operator on this worker."""
    router = operator_named(scope, f"{name} F").step.__self__
    assert isinstance(router, Router)
    return router


def host_of(scope: Any, name: str) -> Any:
    """The S of a migratable operator on this worker."""
    return operator_named(scope, f"{name} S").step.__self__


async def quiet() -> None:
    """Waits until nothing can happen any more: the virtual clock goes on only then. All workers wait alike."""
    await trio.sleep(1)


def frontier(of: Any) -> list[Any]:
    """The elements of a port's or probe's frontier."""
    return sorted(of.frontier)


async def drain(worker: dataflow.Worker, probe: Any, *handles: Any) -> None:
    """Closes inputs and waits for the end."""
    for handle in handles:
        handle.close()
    await probe.wait_done()
