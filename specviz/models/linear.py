"""A linear layer as a callable on `(rows, in)`, in the form that this device multiplies fastest.

On a CPU, oneDNN multiplies by a weight that was reordered once for its kernels 1.5 times faster than by the same weight
as it lies; whether that holds is found by timing, never by a processor's name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

Linear = Callable[[Tensor], Tensor]

_TRIAL_ROWS = (2, 6)
_TRIAL_REPEATS = 7


class PlainLinear:
    """The weight `(out, in)` as it is."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight, self._bias = weight, bias
        self.parameters = weight.numel() + (0 if bias is None else bias.numel())
        self.bytes = weight.element_size() * self.parameters

    def __call__(self, rows: Tensor) -> Tensor:
        return functional.linear(rows, self._weight, self._bias)


class ReorderedLinear:
    """A copy of the weight in oneDNN's own layout; the same product."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)
        self._bias = bias
        self.parameters = weight.numel() + (0 if bias is None else bias.numel())
        self.bytes = weight.element_size() * self.parameters

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, "none", [], "")


def make_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """The faster form of this layer on its device."""
    if weight.device.type == "cpu" and _reordering_pays(*weight.shape, weight.dtype, torch.get_num_threads()):
        return ReorderedLinear(weight, bias)
    return PlainLinear(weight, bias)


@cache
@torch.inference_mode()
def _reordering_pays(width_out: int, width_in: int, dtype: torch.dtype, threads: int) -> bool:
    """Whether a weight of this shape multiplies faster reordered, at the widths of a step and of a verify pass."""
    if not torch.backends.mkldnn.is_available():
        return False
    weight = torch.zeros(width_out, width_in, dtype=dtype)
    try:
        forms = (PlainLinear(weight, None), ReorderedLinear(weight, None))
    except RuntimeError:  # this dtype has no oneDNN kernel on this processor
        return False
    plain, reordered = (sum(_best_seconds(form, width_in, dtype, rows) for rows in _TRIAL_ROWS) for form in forms)
    return reordered < plain


def _best_seconds(form: Linear, width_in: int, dtype: torch.dtype, rows: int) -> float:
    batch = torch.zeros(rows, width_in, dtype=dtype)
    times = []
    for _ in range(_TRIAL_REPEATS):
        start = time.perf_counter()
        form(batch)
        times.append(time.perf_counter() - start)
    return min(times)
