"""Strict numerics: run every pass at one width, at which a test found that a row's bits do not depend on its place.

Rounding differs between kernels, and the number of rows decides the kernel; so where two logits nearly tie, a one-row
step and a verify pass may choose different tokens. At one width the same row gets the same arithmetic.
"""

from __future__ import annotations

import statistics
import time

import torch
from torch import Tensor

from specviz.core.errors import LoadError
from specviz.models.context import Context
from specviz.models.runnable import Runnable
from specviz.models.stopwatch import synchronize

_CANDIDATES = (8, 16, 32)
MAX_STRICT_WIDTH = _CANDIDATES[-1]
_REPEATS = 5


def strict_width(model: Runnable) -> int:
    """The smallest width at which a row has the same bits at every index. Raises LoadError where there is none."""
    for width in _CANDIDATES:
        if 3 * width <= model.context_length:
            model.strict_width = width
            if same_bits_everywhere(model, width):
                return width
    model.strict_width = None
    raise LoadError(
        f"Strict numerics are not possible for {model.name} on {model.device} in {str(model.dtype).split('.')[-1]}: "
        "a row's bits depend on its place in a pass. Run without them; the page shows any divergence."
    )


@torch.inference_mode()
def same_bits_everywhere(model: Runnable, width: int) -> bool:
    """Whether each position's logits have the same bits when read one step at a time and at every place in a pass."""
    ids = (torch.arange(3 * width, device=model.device) * 7919 + 13) % model.vocabulary
    with model.open(len(ids)) as context:
        context.prefill(ids[:width])
        steps = torch.cat([context.forward(token[None]) for token in ids[width:]])
        for shift in range(width):
            context.rewind(context.length - width)
            shifted = [
                context.forward(part) for part in (ids[width : width + shift], ids[width + shift :]) if len(part)
            ]
            if not torch.equal(torch.cat(shifted), steps):
                return False
    return True


@torch.inference_mode()
def strict_cost(model: Runnable) -> float:
    """Seconds of a strict pass / seconds of a one-token pass without strict numerics; medians, passes in turn."""
    width = model.strict_width
    strict, free = [], []
    with model.open(4) as context:
        for _ in range(_REPEATS + 1):
            for kind, times in ((width, strict), (None, free)):
                model.strict_width = kind
                times.append(_seconds(context))
    model.strict_width = width
    return statistics.median(strict[1:]) / statistics.median(free[1:])


def _seconds(context: Context) -> float:
    ids: Tensor = torch.zeros(1, dtype=torch.long, device=context.model.device)
    start = time.perf_counter()
    context.forward(ids)
    synchronize(context.model.device)
    context.rewind(1)
    return time.perf_counter() - start
