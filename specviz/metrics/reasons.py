"""Why a lane is not faster: the one factor whose ideal value would speed it up most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from specviz.metrics.theory import Costs, relative_cost

# Below half a percent no factor can be blamed.
_LEAST_GAIN = 1.005


class Factor(StrEnum):
    """What holds a speculative lane back."""

    ALPHA = "alpha"
    DRAFT_COST = "c"
    VERIFY_COST = "v"
    OVERHEAD = "overhead"
    COVERAGE = "coverage"


@dataclass(frozen=True, slots=True)
class Because:
    """The factor and its measured `number`.

    `would_be` is the speed-up with that factor ideal, None where it cannot be told. `width` is the mean number of
    tokens per verify pass, None where nothing was drafted.
    """

    factor: Factor
    number: float
    would_be: float | None
    width: float | None = None


# A lane whose draft never proposed a token: what it would have gained cannot be told.
NOTHING_DRAFTED = Because(Factor.COVERAGE, 0.0, None)


def explain(costs: Costs) -> Because | None:
    """The factor that gains most when S is recomputed with alpha -> 1, c -> 0, v -> 1, overhead -> 0, coverage -> 1.

    None where no factor gains anything.
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
    return Because(factor, _measured(factor, costs), would_be[factor], costs.drafted + 1)


def _measured(factor: Factor, costs: Costs) -> float:
    return {
        Factor.ALPHA: costs.alpha,
        Factor.DRAFT_COST: costs.c,
        Factor.VERIFY_COST: relative_cost(costs.curve, costs.drafted + 1),
        Factor.OVERHEAD: costs.overhead,
        Factor.COVERAGE: costs.coverage,
    }[factor]
