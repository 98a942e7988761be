"""Aggregates of repeated measurements: median and quartiles, ratios of neighbours, mean and worst. No torch.

None stands for a number that was not measured; every aggregate leaves it out, and is None where nothing is left.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Number = float | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """Repeated measurements of one quantity, in the order taken, with median and quartiles (inclusive method)."""

    samples: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[Number]) -> Distribution:
        return cls(_known(values))

    @classmethod
    def of_ratios(cls, numerators: Sequence[Number], denominators: Sequence[Number]) -> Distribution:
        """The ratios of measurements taken next to each other, so that a drift of the machine cancels out."""
        pairs = zip(numerators, denominators, strict=True)
        return cls.of(None if above is None or below is None else above / below for above, below in pairs)

    @property
    def median(self) -> Number:
        return self._quartile(1)

    @property
    def q1(self) -> Number:
        return self._quartile(0)

    @property
    def q3(self) -> Number:
        return self._quartile(2)

    def _quartile(self, index: int) -> Number:
        if len(self.samples) < 2:
            return self.samples[0] if self.samples else None
        return statistics.quantiles(self.samples, n=4, method="inclusive")[index]


@dataclass(frozen=True, slots=True)
class MeanAndWorst:
    """The mean of a number over several prompts, and the lowest value with the prompt that gave it."""

    mean: Number
    worst: Number
    worst_prompt: str | None

    @classmethod
    def of(cls, by_prompt: Mapping[str, Number]) -> MeanAndWorst:
        known = {prompt: value for prompt, value in by_prompt.items() if value is not None}
        worst = min(known, key=known.__getitem__, default=None)
        return cls(statistics.fmean(known.values()) if known else None, known.get(worst), worst)


def median(values: Iterable[Number]) -> Number:
    known = _known(values)
    return statistics.median(known) if known else None


def medians(records: Sequence[object], names: Iterable[str]) -> dict[str, Number]:
    """The median over `records` of each attribute named."""
    return {name: median(getattr(record, name) for record in records) for name in names}


def _known(values: Iterable[Number]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)
