"""The verify curve: the cost of a target pass over w tokens, measured when nothing else runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from specviz.core.settings import MAX_K
from specviz.experiments.aggregate import Distribution
from specviz.experiments.bench_report import PartResult, Table, median_cell
from specviz.experiments.harness import Harness, Needs
from specviz.experiments.repeat import measure_in_turn
from specviz.models import Context, LanguageModel
from specviz.models.calibration import widths_for
from specviz.models.stopwatch import synchronize

TITLE = "the verify curve"
NEEDS = Needs.TARGET
_ALSO = 8  # a width that people ask for, beside those that the app measures
_BEHIND = 128  # tokens read before, as in the middle of a short reply


@dataclass(frozen=True, slots=True)
class WidthCost:
    """A pass of one width: `v` over the median one-token pass, `ratio` over the one-token pass of the same turn."""

    seconds: Distribution
    v: float
    ratio: Distribution


@dataclass(frozen=True, slots=True)
class VerifyResult(PartResult):
    """`widths` in tokens per pass."""

    widths: Mapping[int, WidthCost]

    def tables(self) -> Iterator[Table]:
        rows = (
            (str(width), median_cell(cost.seconds, ".1f", scale=1000), f"{cost.v:.2f}")
            for width, cost in self.widths.items()
        )
        yield Table("verify curve", ("tokens in the pass", "ms", "over one token"), tuple(rows))


def measure(harness: Harness) -> VerifyResult:
    widths = sorted({*widths_for(harness.target, MAX_K), min(_ALSO, harness.target.context_length)})
    samples = pass_seconds(harness.target, widths, harness.plan.effort.pass_repeats)
    costs = {width: _cost(samples[width], samples[1]) for width in widths}
    for width, cost in costs.items():
        harness.tell(f"{width} tokens: {1000 * cost.seconds.median:.1f} ms, {cost.v:.2f}")
    return VerifyResult(costs)


def pass_seconds(target: LanguageModel, widths: Sequence[int], repeats: int) -> dict[int, tuple[float, ...]]:
    """`repeats` passes at each width, all widths in turn; a first turn, which prepares kernels, is dropped."""
    behind = max(0, min(_BEHIND, target.context_length - max(widths)))
    with target.open(behind + max(widths)) as context:
        context.prepare(max(widths))
        context.prefill([index % target.vocabulary for index in range(behind)])
        return measure_in_turn({width: partial(_seconds, context, width) for width in widths}, repeats, warm_ups=1)


def _cost(seconds: Sequence[float], one_token: Sequence[float]) -> WidthCost:
    own, one = Distribution.of(seconds), Distribution.of(one_token)
    return WidthCost(own, own.median / one.median, Distribution.of_ratios(seconds, one_token))


def _seconds(context: Context, width: int) -> float:
    device = context.model.device
    ids = torch.arange(width, device=device) % context.model.vocabulary
    synchronize(device)
    start = time.perf_counter()
    context.forward(ids)
    synchronize(device)
    seconds = time.perf_counter() - start
    context.rewind(width)
    return seconds
