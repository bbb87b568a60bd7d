"""Steps without state, in one pass of Arrow's engine over each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyarrow import acero
from pyarrow import compute as pc

from dataflow.columns import Columns
from megaphone.frames.expressions import Expression


@dataclass(frozen=True)
class Keeping:
    """Keeps the rows for which an expression is true."""

    where: Expression

    @property
    def needs(self) -> frozenset[str]:
        """The columns that it looks at."""
        return self.where.needs

    def __repr__(self) -> str:
        return f"filter {self.where.arrow}"


@dataclass(frozen=True)
class Making:
    """Makes columns; the others stay (`adds`) or go."""

    columns: Mapping[str, Expression]
    adds: bool

    @property
    def needs(self) -> frozenset[str]:
        """The columns that it looks at."""
        return frozenset().union(*(each.needs for each in self.columns.values()))

    def __repr__(self) -> str:
        made = ", ".join(f"{name} = {each.arrow}" for name, each in self.columns.items())
        return f"{'with columns' if self.adds else 'select'} {made}"


Stateless: TypeAlias = Keeping | Making


def run(steps: Sequence[Stateless], wanted: Sequence[str] | None, batch: Columns) -> Columns:
    """All steps over a batch, in one pass. `wanted`: the columns that are left at the end; None: all."""
    if not steps:
        return batch if wanted is None else batch.select(wanted)
    names = list(batch.names)
    plan = [acero.Declaration("table_source", acero.TableSourceNodeOptions(batch.to_arrow()))]
    for step in steps:
        if isinstance(step, Keeping):
            plan.append(acero.Declaration("filter", acero.FilterNodeOptions(step.where.arrow)))
            continue
        made = {name: each.arrow for name, each in step.columns.items()}
        given = {name: pc.field(name) for name in names} | made if step.adds else made
        names = list(given)
        plan.append(acero.Declaration("project", acero.ProjectNodeOptions([*given.values()], names)))
    if wanted is not None and list(wanted) != names:
        plan.append(acero.Declaration("project", acero.ProjectNodeOptions([*map(pc.field, wanted)], [*wanted])))
    return Columns(acero.Declaration.from_sequence(plan).to_table(use_threads=False))


def needed(steps: Sequence[Stateless], after: frozenset[str] | None) -> frozenset[str] | None:
    """The columns that steps need so that those of `after` come out; None: nobody knows, so all."""
    for step in reversed(steps):
        if isinstance(step, Keeping):
            after = None if after is None else after | step.needs
        elif step.adds:
            after = None if after is None else (after - frozenset(step.columns)) | step.needs
        else:
            after = step.needs
    return after
