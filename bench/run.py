"""What an experiment is given: how long it may take, a way to show that it goes on, and where its numbers go."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench.progress import Display
from megaphone.harness.progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")


@dataclass(frozen=True)
class Measurement:
    """One number, and if there is one the number it is to be held against, measured in the same run."""

    name: str
    value: float
    unit: str
    baseline: float | None = None

    @property
    def ratio(self) -> float | None:
        """``value / baseline``; None without a baseline, or with one of zero.

        >>> Measurement("rows", 6e6, "rows/s", baseline=8e6).ratio
        0.75
        """
        return self.value / self.baseline if self.baseline else None


class Run:
    """One run of some experiments; ``results`` is what was reported so far, so that an interrupt loses nothing.

    >>> run = Run(quick=True)
    >>> run.report("rows through map", 6e6, "rows/s", baseline=8e6)
    >>> run.results
    [Measurement(name='rows through map', value=6000000.0, unit='rows/s', baseline=8000000.0)]
    """

    def __init__(self, quick: bool, display: Display | None = None, folder: Path = Path("figures")) -> None:
        self.quick = quick  # stay under a minute, at the price of noise or scale
        self.folder = folder  # where pictures go
        self.pictures: list[Path] = []
        self.results: list[Measurement] = []
        self.told: list[str] = []
        self._display = display or Display()
        self.experiment = ""  # the one under way

    def begin(self, experiment: str) -> None:
        """From here on names are reported as ``experiment/name``, so that results of several experiments stay apart."""
        self.experiment = experiment

    def report(self, name: str, value: float, unit: str, baseline: float | None = None) -> None:
        """Record a result. ``baseline`` is what to compare it with, in the same unit and taken in the same run."""
        full_name = f"{self.experiment}/{name}" if self.experiment else name
        checked_baseline = None if baseline is None else _finite(full_name, baseline)
        self.results.append(Measurement(full_name, _finite(full_name, value), unit, checked_baseline))

    def tell(self, text: str) -> None:
        """Something for people, such as a table across results, to be printed after them."""
        self.told.append(text)

    def draw(self, figure: "Figure", name: str = "") -> Path:
        """Save a picture (see ``megaphone.harness.plots``) as ``FOLDER/EXPERIMENT[-name].png``; its path is printed."""
        from megaphone.harness import plots

        self.folder.mkdir(parents=True, exist_ok=True)
        parts = [part for part in (self.experiment, name) if part]
        self.pictures.append(plots.save(figure, self.folder / f"{'-'.join(parts) or 'figure'}.png"))
        return self.pictures[-1]

    def progress(self, label: str, total: int) -> Progress:
        """``with run.progress("warm-up", 100) as bar: bar.advance()``; between measurements, not inside one."""
        return self._display.progress(self._labelled(label), total)

    def each(self, label: str, items: Sequence[T]) -> Iterator[T]:
        """The items one by one, with a progress bar that counts them."""
        with self.progress(label, len(items)) as bar:
            for item in items:
                yield item
                bar.advance()

    def _labelled(self, label: str) -> str:
        return f"{self.experiment}: {label}" if self.experiment else label


def _finite(name: str, value: float) -> float:
    number = float(value)  # also turns numpy's scalars into what JSON knows
    if not math.isfinite(number):
        raise ValueError(f"{name}: {number} was reported, which is not a measurement; a division by zero, perhaps?")
    return number
