"""The theory of speculative decoding: how many tokens a round gives, what it costs, and which k is best.

Costs are in one-token target passes. Knows nothing of rounds, lanes or clocks.
E(alpha, k) and E / (k c + 1) are the teaching formulas of Leviathan et al. 2023, sections 3.1 and 3.3; they assume
that all positions are accepted at one rate and that a wider pass is free. `speedup` assumes neither.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from specviz.core.errors import InputError
from specviz.traces import VerifyCurve

MAX_SEARCHED_K = 32


class BestK(NamedTuple):
    """The k with the highest predicted speed-up; 0 where drafting never pays."""

    k: int
    speedup: float


@dataclass(frozen=True, slots=True)
class Costs:
    """The quantities that a lane's speed depends on.

    `rates[i]` is the conditional acceptance at position i + 1; the last one holds for all positions beyond. `alpha` is
    the pooled rate. `drafted` is the mean over the rounds that drafted, `coverage` the share of such rounds. `c` and
    `overhead` are in one-token target passes. `depth` is a tree's mean depth, None in a chain, where it is `drafted`.
    `calibrated` tells a curve that was measured from one that is estimated from the run's own rounds.
    """

    alpha: float
    rates: tuple[float, ...]
    drafted: float
    c: float
    curve: VerifyCurve | None = None
    overhead: float = 0.0
    coverage: float = 1.0
    depth: float | None = None
    calibrated: bool = False

    @property
    def speedup(self) -> float:
        """Predicted speed-up as the lane ran."""
        return self.at(self.drafted)

    def at(self, k: float) -> float:
        """Predicted speed-up had it drafted k tokens in each of its drafting rounds."""
        options = {"coverage": self.coverage, "depth": self.depth}
        return speedup(self.rates, k, self.c, self.curve, self.overhead, **options)


def expected_tokens(alpha: float, k: float) -> float:
    """E, the expected tokens per round where each of k drafted tokens is accepted with chance `alpha`: 1 to k + 1."""
    _check_rate(alpha)
    if alpha == 0.0:
        return 1.0
    if alpha == 1.0:
        return k + 1.0
    # expm1 keeps the digits that 1 - alpha ** (k + 1) would lose near alpha = 1
    return -math.expm1((k + 1) * math.log(alpha)) / (1 - alpha)


def teaching_speedup(alpha: float, k: float, c: float) -> float:
    """E / (k c + 1): one rate for all positions, a wider pass free, no overhead."""
    return expected_tokens(alpha, k) / (k * c + 1)


def accepted_length_law(alpha: float, k: int) -> tuple[float, ...]:
    """The chances that exactly 0, 1, ..., k of k drafted tokens are accepted: geometric, cut at k. k + 1 values."""
    _check_rate(alpha)
    return (*(alpha**length * (1 - alpha) for length in range(k)), alpha**k)


def tokens_per_round(rates: Sequence[float], k: float) -> float:
    """1 + sum over j <= k of the product of the first j rates; the last rate stands for all positions beyond.

    Unlike E, it takes each position at its own rate. A fractional k counts its last position in part.
    """
    total = reach = 1.0
    for position in range(math.ceil(k) if rates else 0):
        rate = rates[min(position, len(rates) - 1)]
        _check_rate(rate)
        reach *= rate
        total += reach * min(1.0, k - position)
    return total


def relative_cost(curve: VerifyCurve | None, width: float) -> float:
    """v(width): a target pass over `width` tokens, in one-token passes.

    Interpolated between the measured widths and extrapolated from the last two; 1 at and below the first width, and
    without a curve. It never falls beyond the last width: a wider pass that is cheaper is noise.
    """
    measured = zip(curve.widths, curve.seconds, strict=False) if curve else ()
    points = sorted((known, seconds) for known, seconds in measured if seconds > 0)
    if len(points) < 2 or width <= points[0][0]:
        return 1.0
    right = min(bisect_left(points, (width, -math.inf)), len(points) - 1)
    (low, low_seconds), (high, high_seconds) = points[right - 1], points[right]
    slope = (high_seconds - low_seconds) / (high - low) if high > low else 0.0
    if width > high:
        return (high_seconds + max(0.0, slope) * (width - high)) / points[0][1]
    return (low_seconds + slope * (width - low)) / points[0][1]


def speedup(
    rates: Sequence[float],
    k: float,
    c: float,
    curve: VerifyCurve | None = None,
    overhead: float = 0.0,
    *,
    coverage: float = 1.0,
    depth: float | None = None,
) -> float:
    """S, tokens per round / (k c + v(k + 1) + overhead); k = 0 is standard decoding and gives 1.

    Rounds that draft nothing (1 - `coverage` of them) give one token for one pass. A tree of k nodes gives its tokens
    by `depth`.
    """
    if k == 0:
        return 1.0
    idle = 1 - coverage
    tokens = coverage * tokens_per_round(rates, k if depth is None else depth) + idle
    return tokens / (coverage * (k * c + relative_cost(curve, k + 1)) + idle + overhead)


def best_k(
    rates: Sequence[float],
    c: float,
    curve: VerifyCurve | None = None,
    overhead: float = 0.0,
    *,
    coverage: float = 1.0,
    limit: int = MAX_SEARCHED_K,
) -> BestK:
    """The best k in 0..limit for a chain; of equals, the smallest."""
    options = [BestK(k, speedup(rates, k, c, curve, overhead, coverage=coverage)) for k in range(limit + 1)]
    return max(options, key=lambda option: option.speedup)


def _check_rate(rate: float) -> None:
    if not 0.0 <= rate <= 1.0:
        raise InputError(f"An acceptance rate must lie between 0 and 1; {rate!r} does not.")
