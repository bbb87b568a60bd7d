"""Which experiments there are: a function becomes one by a decorator, in any module of ``bench/experiments/``."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bench.run import Run

Body = Callable[[Run], None]


@dataclass(frozen=True)
class Experiment:
    name: str
    summary: str
    body: Body


class Unknown(LookupError):
    """Somebody asked for a name that no experiment has."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Experiments:
    """Experiments of one kind, by name.

    >>> kind = Experiments()
    >>> @kind.register("sort", "how long sorting takes")
    ... def sort(run: Run) -> None: ...
    >>> [experiment.name for experiment in kind]
    ['sort']
    """

    def __init__(self) -> None:
        self._experiments: dict[str, Experiment] = {}

    def register(self, name: str, summary: str) -> Callable[[Body], Body]:
        """The decorator: ``@benchmark("name", "one line for the list")``. The function itself stays as it is."""
        if name == "all":
            raise ValueError("no experiment can be called 'all': on the command line that means every one")
        if name in self._experiments:
            raise ValueError(f"there are two experiments called {name!r}; rename one")

        def add(body: Body) -> Body:
            self._experiments[name] = Experiment(name, summary, body)
            return body

        return add

    def select(self, names: Iterable[str]) -> list[Experiment]:
        """The experiments of these names, each once, in the order asked for; ``all`` is every one, by name."""
        wanted = dict.fromkeys(names)
        if "all" in wanted:
            return list(self)
        return [self._find(name) for name in wanted]

    def _find(self, name: str) -> Experiment:
        try:
            return self._experiments[name]
        except KeyError:
            raise Unknown(name) from None

    def __contains__(self, name: str) -> bool:
        return name in self._experiments

    def __iter__(self) -> Iterator[Experiment]:
        return iter(sorted(self._experiments.values(), key=lambda experiment: experiment.name))

    def __len__(self) -> int:
        return len(self._experiments)


benchmarks = Experiments()
figures = Experiments()
benchmark = benchmarks.register
figure = figures.register


def discover() -> None:
    """Import every module of ``bench.experiments``, which is what makes its experiments known.

    A module that cannot be imported raises: a benchmark that silently vanished from the list would not be missed.
    """
    package = importlib.import_module("bench.experiments")
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
