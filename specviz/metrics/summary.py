"""Summary: every number of one lane, frozen. It knows neither how it was counted nor how it is shown.

A number that is not defined, or not yet, is None; none is ever NaN or infinite. Times are seconds on the lane's own
clock, which starts after the prefill; costs are in one-token target passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from specviz.metrics.agreement import Comparison
from specviz.metrics.reasons import Because
from specviz.metrics.theory import Costs


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """What one of a strategy's sources drafted, and how much of that was accepted."""

    source: str
    drafted: int
    accepted: int

    @property
    def acceptance(self) -> float:
        """accepted / drafted."""
        return self.accepted / self.drafted


@dataclass(frozen=True, slots=True)
class Summary:
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
    # the lane's policy of k: all but "fixed" choose where to draft, and so what `alpha` is measured on
    k_policy: str

    # counts; `positions_computed`, of the target, leave out the prefill
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

    # rates: `acceptance` is accepted / drafted, `alpha` accepted / tested, `alpha_overlap` its low-variance form
    # (mean of sum(min(p, q)) over tested positions), `tau` kept tokens a target pass, prefill left out. In a tree
    # `drafted` counts nodes and so alternatives that cannot all be accepted; a position is a depth, and `alpha` the
    # chance that one of the nodes tested at a depth is right
    acceptance: float | None
    alpha: float | None
    alpha_overlap: float | None
    tau: float | None
    coverage: float | None
    # of the rounds that drafted: drafted tokens, how deep they reach (in a chain the same), and how deep they held
    mean_drafted: float | None
    mean_depth: float | None
    mean_accepted: float | None
    # by position, from 1: accepted there / rounds that reached it (conditional), or / rounds that drafted (vLLM's)
    accepted_per_position: tuple[float | None, ...]
    accepted_per_position_vllm: tuple[float | None, ...]
    reached_per_position: tuple[int, ...]
    # rounds that drafted, by number of accepted tokens and by number of positions drafted; each from 0
    accepted_lengths: tuple[int, ...]
    drafted_lengths: tuple[int, ...]
    # of strategies that draft from several sources, each source's share; empty for all others
    sources: tuple[SourceCounts, ...]

    # clocks; `prefill_seconds` is the shared one plus the draft's own, `first_token_seconds` adds the first round
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

    # costs and prediction; `overhead` is the median other seconds of a round over a one-token pass
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
