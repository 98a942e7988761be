"""Linear layers as callables on `(rows, in)`, in the form that this device multiplies fastest.

On a CPU, oneDNN multiplies 1.5 times faster by a weight that was reordered once for its kernels than by the same weight
in its usual layout. Timing decides whether that holds, never the name of a processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

Linear = Callable[[Tensor], Tensor]

INT4_GROUP = 32

_TRIAL_ROWS = (2, 6)
_TRIAL_REPEATS = 7


class PlainLinear:
    """The weight `(out, in)` in its usual layout."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight, self._bias = weight, bias
        self.parameters = weight.numel() + (0 if bias is None else bias.numel())
        self.bytes = weight.element_size() * self.parameters

    def __call__(self, rows: Tensor) -> Tensor:
        return functional.linear(rows, self._weight, self._bias)

    def outputs(self, ids: Tensor) -> tuple[Tensor, Tensor | None]:
        """The weights and the bias of these outputs only."""
        return self._weight[ids], None if self._bias is None else self._bias[ids]


class ReorderedLinear:
    """A copy of the weight in oneDNN's own layout; the product is the same."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)
        self._bias = bias
        self.parameters = weight.numel() + (0 if bias is None else bias.numel())
        self.bytes = weight.element_size() * self.parameters

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, "none", [], "")

    def outputs(self, ids: Tensor) -> tuple[Tensor, Tensor | None]:
        """The weights and the bias of these outputs only."""
        return self._weight.to_dense()[ids], None if self._bias is None else self._bias[ids]


class Int4Linear:
    """The weight rounded to 4 bits in groups of 32 inputs, multiplied by torch's own weight-only kernel.

    Another model than the weight it came from: each group keeps a scale and a zero in bfloat16.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        codes, self._scales = quantise(weight.float())
        self._on_cpu = weight.device.type == "cpu"
        if self._on_cpu:
            self._weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
        else:
            pairs = (codes[:, ::2] << 4 | codes[:, 1::2]).to(torch.uint8)
            self._weight = torch.ops.aten._convert_weight_to_int4pack(pairs, 8)
        self._bias = bias
        self.parameters = weight.numel() + (0 if bias is None else bias.numel())
        self.bytes = self._weight.nbytes + self._scales.nbytes + (0 if bias is None else bias.nbytes)

    def __call__(self, rows: Tensor) -> Tensor:
        kernel = torch.ops.aten
        multiply = kernel._weight_int4pack_mm_for_cpu if self._on_cpu else kernel._weight_int4pack_mm
        product = multiply(rows, self._weight, INT4_GROUP, self._scales)
        return product if self._bias is None else product + self._bias


def int4_fits(weight: Tensor) -> bool:
    """Whether torch's int4 kernel takes this weight: bfloat16, in whole groups and whole blocks of outputs."""
    rows, columns = weight.shape
    return weight.dtype is torch.bfloat16 and columns % INT4_GROUP == 0 and rows % 64 == 0


def quantise(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Codes 0 to 15 (out, in), and scales and zeros (in / 32, out, 2): weight ~ (code - 8) * scale + zero."""
    groups = weight.unflatten(-1, (-1, INT4_GROUP))
    low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    scale = ((high - low) / 15).clamp_min(1e-9)
    codes = ((groups - low) / scale).round().clamp(0, 15).to(torch.int32).flatten(-2)
    scales = torch.cat([scale, low + 8 * scale], -1).transpose(0, 1).contiguous()
    return codes, scales.to(torch.bfloat16)


def make_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """The form of this layer that is fastest on its device."""
    if weight.device.type == "cpu" and _reordering_pays(*weight.shape, weight.dtype, torch.get_num_threads()):
        return ReorderedLinear(weight, bias)
    return PlainLinear(weight, bias)


@cache
@torch.inference_mode()
def _reordering_pays(width_out: int, width_in: int, dtype: torch.dtype, threads: int) -> bool:
    """Whether a weight of this shape multiplies faster when reordered, at the widths of a step and a verify pass."""
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
