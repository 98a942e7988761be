"""Summary: every number of one lane, frozen, and how it follows from the lane's counts.

`definitions` says what each number means and how it is shown. A number that is not defined, or not yet, is None; none
is ever NaN or infinite. Times are seconds on the lane's own clock, which starts after the prefill; costs are in
one-token target passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from specviz.core.settings import MAX_K
from specviz.metrics.agreement import Comparison, agree
from specviz.metrics.lane_tally import SUMMED, LaneTally, SourceCounts
from specviz.metrics.reasons import NOTHING_DRAFTED, Because, explain
from specviz.metrics.theory import Costs, best_k, expected_tokens, relative_cost, teaching_speedup
from specviz.traces import VerifyCurve


@dataclass(frozen=True, slots=True)
class Summary:
    """Every number of one lane, by the names that `definitions` defines."""

    # what ran, and what it wrote
    name: str
    draft: str
    label: str
    sampled: bool
    text: str
    token_ids: tuple[int | None, ...]
    finish_reason: str | None
    message: str | None
    kept_tokens: int
    k_policy: str

    # counts
    rounds: int
    drafting_rounds: int
    target_passes: int | None
    draft_passes: int | None
    drafted: int | None
    accepted: int
    tested: int
    wasted_drafts: int | None
    positions_computed: int | None
    wasted_positions: int | None

    # rates
    acceptance: float | None
    alpha: float | None
    alpha_overlap: float | None
    tau: float | None
    coverage: float | None
    mean_drafted: float | None
    mean_depth: float | None
    mean_accepted: float | None
    # by position: index 0 is position 1
    accepted_per_position: tuple[float | None, ...]
    accepted_per_position_vllm: tuple[float | None, ...]
    reached_per_position: tuple[int, ...]
    # by number of tokens: index 0 is no token
    accepted_lengths: tuple[int, ...]
    drafted_lengths: tuple[int, ...]
    # by source, the best first; empty where the draft does not name its sources
    sources: tuple[SourceCounts, ...]

    # clocks
    seconds: float | None
    draft_seconds: float | None
    verify_seconds: float | None
    other_seconds: float | None
    telemetry_seconds: float | None
    wall_seconds: float | None
    prefill_seconds: float | None
    draft_prefill_seconds: float | None
    first_token_seconds: float | None
    tokens_per_second: float | None

    # costs and predictions
    one_token_pass_seconds: float | None
    c: float | None
    overhead: float | None
    overhead_seconds: float | None
    costs: Costs | None
    predicted_speedup: float | None
    best_k: int | None
    best_speedup: float | None
    because: Because | None

    # against the standard lane; `first_divergence` is an index into token_ids, from 0
    speedup: float | None
    comparison: Comparison
    compared_tokens: int
    identical_to_standard: bool | None
    first_divergence: int | None
    divergence_margin: float | None

    @property
    def standard(self) -> bool:
        """Whether this is the standard lane itself."""
        return self.comparison is Comparison.STANDARD

    @property
    def verify_cost(self) -> float | None:
        """v, a target pass over the mean drafted tokens plus one, in one-token passes."""
        return None if self.costs is None else relative_cost(self.costs.curve, self.costs.drafted + 1)

    @property
    def teaching_tokens(self) -> float | None:
        """E(alpha, mean drafted), by the formula of Leviathan et al. 2023, section 3.1."""
        known = self.alpha is not None and self.mean_drafted is not None
        return expected_tokens(self.alpha, self.mean_drafted) if known else None

    @property
    def teaching_speedup(self) -> float | None:
        """E / (k c + 1) at k = mean drafted: a wider pass free, no overhead."""
        known = None not in (self.alpha, self.mean_drafted, self.c)
        return teaching_speedup(self.alpha, self.mean_drafted, self.c) if known else None

    @property
    def divergence_token(self) -> int | None:
        """The first token that differs from standard decoding's, counted from 1."""
        return None if self.first_divergence is None else self.first_divergence + 1


def summary_of(
    lane: LaneTally, standard: LaneTally | None, shared_prefill: float | None, curve: VerifyCurve | None
) -> Summary:
    """A lane's Summary; `curve` is None while the verify curve is pending."""
    one_pass = _median(standard.verify_sorted) if standard else None
    drafts = _draft_numbers(lane)
    return Summary(
        **_identity(lane),
        **drafts,
        **_position_numbers(lane),
        **_clock_numbers(lane, shared_prefill),
        **_cost_numbers(lane, drafts, one_pass, curve),
        **_comparison_numbers(lane, standard),
    )


def _identity(lane: LaneTally) -> dict[str, Any]:
    end = lane.finished
    return {
        "name": lane.info.name,
        "draft": lane.info.draft,
        "label": lane.info.label,
        "sampled": not lane.info.settings.greedy,
        "text": end.text if end and end.text is not None else "".join(lane.texts),
        "token_ids": tuple(lane.ids),
        "finish_reason": end.reason.value if end else None,
        "message": end.message if end else None,
        "kept_tokens": len(lane.ids),
        "k_policy": lane.info.settings.k_policy,
    }


def _draft_numbers(lane: LaneTally) -> dict[str, Any]:
    drafted, kept = lane.total("drafted"), len(lane.ids)
    computed = None if drafted is None else drafted + lane.rounds
    return {
        "rounds": lane.rounds,
        "drafting_rounds": lane.drafting_rounds,
        "target_passes": lane.total("target_passes"),
        "draft_passes": lane.total("draft_passes"),
        "drafted": drafted,
        "accepted": lane.accepted,
        "tested": lane.tested,
        "wasted_drafts": None if drafted is None else drafted - lane.accepted,
        "positions_computed": computed,
        "wasted_positions": None if computed is None else computed - kept,
        "acceptance": _ratio(lane.accepted, drafted),
        "alpha": _ratio(lane.accepted, lane.tested),
        "alpha_overlap": _ratio(lane.overlap_sum, lane.overlaps),
        "tau": _ratio(kept, lane.total("target_passes")),
        "coverage": _ratio(lane.drafting_rounds, lane.rounds),
        "mean_drafted": _ratio(drafted, lane.drafting_rounds),
        "mean_depth": None if drafted is None else _ratio(lane.positions, lane.drafting_rounds),
        "mean_accepted": _ratio(lane.accepted, lane.drafting_rounds),
        "sources": lane.sources,
    }


def _position_numbers(lane: LaneTally) -> dict[str, Any]:
    pairs = zip(lane.accepted_at, lane.reached, strict=True)
    return {
        "accepted_per_position": tuple(_ratio(accepted, reached) for accepted, reached in pairs),
        "accepted_per_position_vllm": tuple(_ratio(at, lane.drafting_rounds) for at in lane.accepted_at),
        "reached_per_position": tuple(lane.reached),
        "accepted_lengths": tuple(lane.accepted_lengths),
        "drafted_lengths": tuple(lane.drafted_lengths),
    }


def _clock_numbers(lane: LaneTally, shared_prefill: float | None) -> dict[str, Any]:
    own = lane.draft_prefill_seconds
    prefill = _sum(None if shared_prefill is None and own is None else shared_prefill or 0.0, own or 0.0)
    return {
        **{name: lane.total(name) for name in SUMMED if name.endswith("seconds")},
        "wall_seconds": lane.finished.wall_seconds if lane.finished else None,
        "prefill_seconds": prefill,
        "draft_prefill_seconds": own,
        "first_token_seconds": _sum(prefill, lane.first_round_seconds),
        "tokens_per_second": _ratio(len(lane.ids), lane.total("seconds")) or None,
    }


def _cost_numbers(
    lane: LaneTally, drafts: dict[str, Any], one_pass: float | None, curve: VerifyCurve | None
) -> dict[str, Any]:
    overhead_seconds = _median(lane.other_sorted)
    c = _ratio(_ratio(lane.total("draft_seconds"), drafts["drafted"]), one_pass)
    overhead = _ratio(overhead_seconds, one_pass)
    costs = _costs(lane, drafts, c, overhead, curve or _observed_curve(lane, one_pass))
    costs = replace(costs, calibrated=curve is not None) if costs else None
    searchable = costs is not None and costs.calibrated and costs.depth is None
    best = best_k(costs.rates, c, costs.curve, overhead, coverage=costs.coverage) if searchable else None
    return {
        "one_token_pass_seconds": one_pass,
        "c": c,
        "overhead": overhead,
        "overhead_seconds": overhead_seconds,
        "costs": costs,
        "predicted_speedup": costs.speedup if costs and costs.calibrated else None,
        "best_k": best.k if best else None,
        "best_speedup": best.speedup if best else None,
        "because": _because(lane, costs),
    }


def _costs(
    lane: LaneTally, drafts: dict[str, Any], c: float | None, overhead: float | None, curve: VerifyCurve | None
) -> Costs | None:
    """What the cost model takes, None where a part is unknown or makes no sense (a stranger's trace may hold it)."""
    alpha, drafted = drafts["alpha"], drafts["mean_drafted"]
    if None in (alpha, drafted, c, overhead) or min(c, overhead) < 0 or not 0 < drafted <= MAX_K:
        return None
    measured = _position_numbers(lane)["accepted_per_position"]
    return Costs(
        alpha=alpha,
        # beyond the measured positions the pooled rate stands in
        rates=(*(alpha if rate is None else rate for rate in measured), alpha),
        drafted=drafted,
        c=c,
        curve=curve,
        overhead=overhead,
        coverage=drafts["coverage"],
        depth=lane.positions / lane.drafting_rounds if lane.tree else None,
    )


def _observed_curve(lane: LaneTally, one_pass: float | None) -> VerifyCurve | None:
    """The verify curve as far as the run itself shows it, while the calibrated one is pending."""
    if one_pass is None:
        return None
    medians = {width: _median(seconds) for width, seconds in lane.verify_by_width.items()} | {1: one_pass}
    widths = tuple(sorted(medians))
    return VerifyCurve(widths, tuple(medians[width] for width in widths), (0.0,) * len(widths))


def _because(lane: LaneTally, costs: Costs | None) -> Because | None:
    if lane.info.draft != "none" and lane.rounds and not lane.drafting_rounds:
        return NOTHING_DRAFTED
    return explain(costs) if costs else None


def _comparison_numbers(lane: LaneTally, standard: LaneTally | None) -> dict[str, Any]:
    if standard is None:
        return _comparison(Comparison.UNKNOWN)
    if lane is standard:
        greedy_text = lane.info.settings.greedy and bool(lane.ids)
        found = _comparison(Comparison.STANDARD, compared_tokens=len(lane.ids), identical=True if greedy_text else None)
        return found | {"speedup": 1.0 if _seconds_per_token(lane) else None}
    result = agree(standard.output, lane.output, lane.agreed)
    lane.agreed = result.compared_tokens
    return _comparison(
        result.comparison,
        speedup=_ratio(_seconds_per_token(standard), _seconds_per_token(lane)),
        compared_tokens=result.compared_tokens,
        identical=result.identical,
        first_divergence=result.first_divergence,
        margin=_margin(standard, lane, result.first_divergence),
    )


def _comparison(
    comparison: Comparison,
    speedup: float | None = None,
    compared_tokens: int = 0,
    identical: bool | None = None,
    first_divergence: int | None = None,
    margin: float | None = None,
) -> dict[str, Any]:
    return {
        "comparison": comparison,
        "speedup": speedup,
        "compared_tokens": compared_tokens,
        "identical_to_standard": identical,
        "first_divergence": first_divergence,
        "divergence_margin": margin,
    }


def _seconds_per_token(lane: LaneTally) -> float | None:
    return _ratio(lane.total("seconds"), len(lane.ids))


def _margin(standard: LaneTally, lane: LaneTally, index: int | None) -> float | None:
    """The target's top-2 gap where the texts part: the standard lane's, else the lane's own."""
    if index is None:
        return None
    margins = [tally.margins[index] for tally in (standard, lane) if index < len(tally.margins)]
    return next((margin for margin in margins if margin is not None), None)


def _median(ordered: list[float]) -> float | None:
    """The median of values already in order, so that a live view may ask at every event."""
    if not ordered:
        return None
    half = len(ordered) // 2
    return ordered[half] / 2 + ordered[~half] / 2


def _sum(one: float | None, other: float | None) -> float | None:
    total = None if one is None or other is None else one + other
    return total if total is None or math.isfinite(total) else None


def _ratio(part: float | None, whole: float | None) -> float | None:
    """part / whole, None where that is no finite number."""
    if part is None or not whole or whole < 0:
        return None
    try:
        ratio = part / whole
    except OverflowError:
        return None
    return ratio if math.isfinite(ratio) else None
