"""From a trace to its numbers: one Summary a lane, the theory behind them, and the verdict in words.

`summarize` drains a stream of events; a `Tally` takes them one at a time and can be asked at any moment. Never
imports torch, transformers or gradio, and draws nothing.
"""

from specviz.metrics.agreement import Comparison
from specviz.metrics.counts import branches
from specviz.metrics.reasons import Because, Factor, explain, percent, times
from specviz.metrics.summary import SourceCounts, Summary
from specviz.metrics.tally import STANDARD, Tally, summarize
from specviz.metrics.theory import (
    MAX_SEARCHED_K,
    BestK,
    Costs,
    accepted_length_law,
    best_k,
    expected_tokens,
    relative_cost,
    speedup,
    teaching_speedup,
    tokens_per_round,
)
from specviz.metrics.words import acceptance_warning, counted, holds_back, policy_bias, verdict

__all__ = [
    "MAX_SEARCHED_K",
    "STANDARD",
    "BestK",
    "Because",
    "Comparison",
    "Costs",
    "Factor",
    "SourceCounts",
    "Summary",
    "Tally",
    "acceptance_warning",
    "accepted_length_law",
    "best_k",
    "branches",
    "counted",
    "expected_tokens",
    "explain",
    "holds_back",
    "percent",
    "policy_bias",
    "relative_cost",
    "speedup",
    "summarize",
    "teaching_speedup",
    "times",
    "tokens_per_round",
    "verdict",
]
