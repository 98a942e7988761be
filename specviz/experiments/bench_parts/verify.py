"""The verify curve: what a target pass over w tokens costs, measured when nothing else runs."""

from __future__ import annotations

import statistics
from typing import Any

from specviz.core.settings import MAX_K
from specviz.experiments.aggregate import described
from specviz.experiments.bench_context import Bed
from specviz.experiments.pass_cost import pass_samples
from specviz.models.calibration import widths_for

TITLE = "the verify curve"
_ALSO = 8  # a width that people ask for, beside those that the app measures


def measure(bed: Bed) -> dict[str, Any]:
    widths = sorted({*widths_for(bed.target, MAX_K), min(_ALSO, bed.target.context_length)})
    samples = pass_samples(bed.target, widths, bed.plan.effort.pass_repeats)
    one = statistics.median(samples[1])
    curve = {str(width): {"seconds": described(samples[width]), **_relative(samples, width, one)} for width in widths}
    for width in widths:
        bed.tell(
            f"{width} tokens: {1000 * curve[str(width)]['seconds']['median']:.1f} ms, {curve[str(width)]['v']:.2f}"
        )
    return {"widths": curve}


def _relative(samples: dict[int, list[float]], width: int, one: float) -> dict[str, Any]:
    """v: over the median one-token pass; and the ratios of passes that were timed in the same turn."""
    turns = [seconds / other for seconds, other in zip(samples[width], samples[1], strict=True)]
    return {"v": statistics.median(samples[width]) / one, "ratio": described(turns)}
