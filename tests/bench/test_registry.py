"""Registering and choosing experiments."""

import pytest

from bench import registry
from bench.registry import Experiments, Unknown
from bench.run import Run


def nothing(run: Run) -> None:
    pass


def filled(*names: str) -> Experiments:
    result = Experiments()
    for name in names:
        result.register(name, "does nothing")(nothing)
    return result


def chosen(from_registry: Experiments, *names: str) -> list[str]:
    return [experiment.name for experiment in from_registry.select(names)]


def test_select_keeps_the_order_asked_for_and_runs_each_once() -> None:
    assert chosen(filled("a", "b", "c"), "c", "a", "c") == ["c", "a"]


def test_all_is_every_one_by_name() -> None:
    assert chosen(filled("b", "a"), "all") == ["a", "b"]
    assert chosen(filled("b", "a"), "b", "all") == ["a", "b"]


def test_an_unknown_name_is_an_error_that_bears_it() -> None:
    with pytest.raises(Unknown) as caught:
        filled("a").select(["a", "z"])
    assert caught.value.name == "z"


@pytest.mark.parametrize(("name", "message"), [("a", "two experiments called 'a'"), ("all", "every one")])
def test_a_name_that_could_not_be_told_apart_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        filled("a").register(name, "again")


def test_discovery_finds_the_yardsticks_and_may_be_repeated() -> None:
    registry.discover()
    registry.discover()
    assert "machine" in registry.benchmarks
