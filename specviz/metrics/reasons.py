"""Why a lane is not faster: the one factor whose ideal value would speed it up most, in a plain sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import StrEnum

from specviz.metrics.theory import Costs, relative_cost

# Below half a percent no factor can be blamed.
_LEAST_GAIN = 1.005
# Room for every digit of any float, so that nothing is rounded twice.
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)


class Factor(StrEnum):
    """What holds a speculative lane back."""

    ALPHA = "alpha"
    DRAFT_COST = "c"
    VERIFY_COST = "v"
    OVERHEAD = "overhead"
    COVERAGE = "coverage"


@dataclass(frozen=True, slots=True)
class Because:
    """The factor, its measured `number`, and `would_be`, the speed-up were it ideal (None: cannot be told)."""

    factor: Factor
    number: float
    would_be: float | None
    sentence: str


def explain(costs: Costs) -> Because | None:
    """The factor that gains most when S is recomputed with alpha -> 1, c -> 0, v -> 1, overhead -> 0, coverage -> 1.

    The sentence reads on from "slower, because". None where no factor gains anything.
    """
    ideals = {
        Factor.ALPHA: replace(costs, rates=(1.0,)),
        Factor.DRAFT_COST: replace(costs, c=0.0),
        Factor.VERIFY_COST: replace(costs, curve=None),
        Factor.OVERHEAD: replace(costs, overhead=0.0),
        Factor.COVERAGE: replace(costs, coverage=1.0),
    }
    would_be = {factor: ideal.speedup for factor, ideal in ideals.items()}
    factor = max(would_be, key=lambda candidate: would_be[candidate])
    if would_be[factor] < costs.speedup * _LEAST_GAIN:
        return None
    return _because(factor, costs, would_be[factor])


def nothing_drafted(rounds: int) -> Because:
    """The reason of a lane whose draft never proposed a token."""
    times = "its only round" if rounds == 1 else f"any of its {rounds} rounds"
    return Because(Factor.COVERAGE, 0.0, None, f"the draft proposed nothing in {times}")


def times(ratio: float) -> str:
    """A speed-up as it is shown: one decimal, two near 1 and near 0, so that 0.97 never reads as 1.0."""
    short = _fixed(ratio, 1)
    return f"{_fixed(ratio, 2)}x" if ratio < 0.1 or short == "1.0" else f"{short}x"


def percent(share: float) -> str:
    """A share in whole percent; 0 % and 100 % are said of exactly none and exactly all only."""
    if 0 < share < 0.005:
        return "under 1 %"
    if 0.995 <= share < 1:
        return "over 99 %"
    return f"{share:.0%}".replace("%", " %")


def _fixed(value: float, digits: int) -> str:
    """`value` with so many decimals, a tie rounded up: what a browser's toFixed writes."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), context=_EXACT):f}"


def _because(factor: Factor, costs: Costs, would_be: float) -> Because:
    verify_cost = relative_cost(costs.curve, costs.drafted + 1)
    number = {
        Factor.ALPHA: costs.alpha,
        Factor.DRAFT_COST: costs.c,
        Factor.VERIFY_COST: verify_cost,
        Factor.OVERHEAD: costs.overhead,
        Factor.COVERAGE: costs.coverage,
    }[factor]
    would = f"it would be {'only ' if would_be < 1 else ''}{times(would_be)}"
    sentence = {
        Factor.ALPHA: f"only {percent(number)} of the tested draft tokens are accepted: if all were, {would}",
        Factor.DRAFT_COST: f"the draft costs {number:.2f} of a target pass for each token: with a free draft {would}",
        Factor.VERIFY_COST: f"checking {costs.drafted + 1:.3g} tokens at once costs {number:.2f} of a one-token pass: "
        f"if width were free {would}",
        Factor.OVERHEAD: f"the work around the passes costs {number:.2f} of a target pass a round: without it {would}",
        Factor.COVERAGE: f"only {percent(number)} of the rounds had anything to try: with a draft in each {would}",
    }[factor]
    return Because(factor, number, would_be, sentence)
