"""Measure the verify curve: what a target pass over w tokens costs when nothing else runs."""

from __future__ import annotations

import statistics
import time
from weakref import WeakKeyDictionary

import torch

from specviz.models import Context, LanguageModel
from specviz.models.fixed_width import WIDTHS
from specviz.models.stopwatch import synchronize
from specviz.traces import VerifyCurve

REPEATS = 5

# keyed by loaded model, then by number of threads; a model has one dtype and one device
_measured: WeakKeyDictionary[LanguageModel, dict[int, VerifyCurve]] = WeakKeyDictionary()


def known_curve(target: LanguageModel, k_max: int) -> VerifyCurve | None:
    """The curve measured earlier, None where it does not reach a pass over k_max + 1 tokens."""
    curve = _measured.get(target, {}).get(torch.get_num_threads())
    return curve if curve is not None and curve.widths[-1] >= widths_for(target, k_max)[-1] else None


def measure_curve(target: LanguageModel, k_max: int, capacity: int) -> VerifyCurve:
    """Median seconds of `REPEATS` passes at each width up to the first that covers k_max + 1; widths take turns."""
    known = known_curve(target, k_max)
    if known is not None:
        return known
    widths = widths_for(target, k_max)
    with target.open(min(target.context_length, max(capacity, widths[-1]))) as context:
        for width in widths:
            _seconds(context, width)  # the first pass of a width prepares its kernels
        times = {width: [] for width in widths}
        for _ in range(REPEATS):
            for width in widths:
                times[width].append(_seconds(context, width))
    curve = VerifyCurve(
        widths,
        tuple(statistics.median(times[width]) for width in widths),
        tuple(_quartile_range(times[width]) for width in widths),
    )
    _measured.setdefault(target, {})[torch.get_num_threads()] = curve
    return curve


def widths_for(target: LanguageModel, k_max: int) -> tuple[int, ...]:
    """The widths to measure for blocks of up to `k_max` drafts."""
    needed = min(k_max + 1, target.context_length)
    enough = next((width for width in WIDTHS if width >= needed), WIDTHS[-1])
    return tuple(width for width in WIDTHS if width <= min(enough, target.context_length))


def _seconds(context: Context, width: int) -> float:
    ids = torch.arange(width, device=context.model.device) % context.model.vocabulary
    start = time.perf_counter()
    context.forward(ids)
    synchronize(context.model.device)
    seconds = time.perf_counter() - start
    context.rewind(width)
    return seconds


def _quartile_range(values: list[float]) -> float:
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return third - first
