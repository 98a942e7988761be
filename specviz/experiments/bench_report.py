"""What a benchmark shows a person: tables of medians with quartiles, and the lines around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specviz.experiments.aggregate import Distribution

ABSENT = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """`head` names the columns; every row has as many cells."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class PartResult:
    """What a part of the benchmark measured; subclasses are frozen records."""

    __slots__ = ()

    def tables(self) -> Iterable[Table]:
        raise NotImplementedError

    def notes(self) -> Iterable[str]:
        """Lines that stand below all tables, such as what failed."""
        return ()


def markdown(table: Table) -> str:
    """The table as Markdown, its title above it."""
    rows = (table.head, ("---",) * len(table.head), *table.rows)
    return "\n".join([f"{table.title}:", "", *(f"| {' | '.join(row)} |" for row in rows), ""])


def number_cell(value: float | None, form: str, unit: str = "", scale: float = 1) -> str:
    return ABSENT if value is None else f"{format(scale * value, form)}{unit}"


def median_cell(values: Distribution, form: str, unit: str = "", scale: float = 1) -> str:
    """The median, and the quartiles in brackets where there is more than one sample."""
    middle = number_cell(values.median, form, unit, scale)
    if len(values.samples) < 2:
        return middle
    return f"{middle} [{number_cell(values.q1, form, scale=scale)}, {number_cell(values.q3, form, scale=scale)}]"


def megabytes_cell(size: int | None) -> str:
    return number_cell(size, ",.0f", scale=1e-6)
