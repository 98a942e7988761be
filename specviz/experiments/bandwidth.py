"""The rate at which this machine's linear kernel reads weights that no cache holds: what a pass is measured against."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from specviz.models.linear import Linear, make_linear
from specviz.models.stopwatch import synchronize

_OUT, _IN = 8192, 4096  # of one weight: large enough that the call itself costs nothing beside it
_CACHES = 3.0  # of the last-level cache, so that a read finds little of the one before


class Reader:
    """Weights of at least `least` bytes, and of several last-level caches, read whole by a few rows."""

    def __init__(self, device: torch.device, dtype: torch.dtype, rows: int, least: int) -> None:
        self._device = device
        wanted = max(least, int(_CACHES * last_level_cache())) if device.type == "cpu" and least > 10**8 else least
        out = min(_OUT, max(1, wanted // (_IN * dtype.itemsize)))
        one = out * _IN * dtype.itemsize
        count = -(-wanted // one)
        # ones, not zeros: pages that nobody has written to are all the same page
        self._linears: list[Linear] = [
            make_linear(torch.ones(out, _IN, dtype=dtype, device=device)) for _ in range(count)
        ]
        self._rows = torch.ones(rows, _IN, dtype=dtype, device=device)
        self.bytes = count * one

    @torch.inference_mode()
    def read(self) -> float:
        """Bytes a second of one read of all weights."""
        synchronize(self._device)
        start = time.perf_counter()
        for linear in self._linears:
            linear(self._rows)
        synchronize(self._device)
        return self.bytes / (time.perf_counter() - start)


def last_level_cache() -> int:
    """Bytes of the largest cache that the processor reports; 0 where it does not."""
    sizes = [_size(path.read_text()) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max(sizes, default=0)


def _size(text: str) -> int:
    text = text.strip()
    unit = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
    digits = text.rstrip("KMG")
    return int(digits) * unit if digits.isdigit() else 0
