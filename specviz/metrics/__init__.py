"""From a trace to its numbers: one Summary per lane, the theory behind them, and the verdict on each lane.

`summarize` drains a stream of events; a `Tally` takes them one at a time and can be asked at any moment. `definitions`
says what each number means, `verdict_of` what came of a lane, and `words` says that in English. Never imports torch,
transformers or gradio, and draws nothing.

Import levels; a module imports only from its right (a test enforces it):

    words > definitions, tally, verdict > summary > lane_tally, reasons > agreement, formats, theory
"""

from specviz.metrics.agreement import Comparison
from specviz.metrics.definitions import METRICS, Group, Metric, Place, Row, rows, shown_in, values
from specviz.metrics.formats import Format, counted, percent, times
from specviz.metrics.lane_tally import SourceCounts, branches
from specviz.metrics.reasons import Because, Factor, explain
from specviz.metrics.summary import Summary
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
from specviz.metrics.verdict import Caution, Divergence, LaneVerdict, Price, Speed, Spread, verdict_of

__all__ = [
    "MAX_SEARCHED_K",
    "METRICS",
    "STANDARD",
    "Because",
    "BestK",
    "Caution",
    "Comparison",
    "Costs",
    "Divergence",
    "Factor",
    "Format",
    "Group",
    "LaneVerdict",
    "Metric",
    "Place",
    "Price",
    "Row",
    "SourceCounts",
    "Speed",
    "Spread",
    "Summary",
    "Tally",
    "accepted_length_law",
    "best_k",
    "branches",
    "counted",
    "expected_tokens",
    "explain",
    "percent",
    "relative_cost",
    "rows",
    "shown_in",
    "speedup",
    "summarize",
    "teaching_speedup",
    "times",
    "tokens_per_round",
    "values",
    "verdict_of",
]
