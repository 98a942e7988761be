"""Where a row of a pass may look: a causal mask, or a windowed one, over a cache of fixed capacity."""

from __future__ import annotations

import torch
from torch import Tensor


def causal_mask(slots: Tensor, capacity: int, dtype: torch.dtype, window: int | None = None) -> Tensor:
    """Additive mask `(1, 1, w, capacity)`: row i sees the slots up to its own `slots[i]`, at most `window` of them.

    With full-length caches a sliding window is a matter of the mask alone, so rejected tokens can be taken back.
    """
    columns = torch.arange(capacity, device=slots.device)
    visible = columns <= slots[:, None]
    if window is not None:
        visible &= columns > slots[:, None] - window
    mask = torch.zeros(visible.shape, dtype=dtype, device=slots.device)
    return mask.masked_fill_(~visible, torch.finfo(dtype).min)[None, None]
