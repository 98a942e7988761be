"""A key/value cache of fixed capacity, which is rolled back by changing a number.

A pass names the slots of its entries; entries beyond the kept length are masked, and overwritten later. Buffers are
zero-filled, never `empty`: even a masked NaN would spoil a weighted sum.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class KVCache:
    """Keys and values of every layer, each `(1, heads, capacity, width)`; allocated at a layer's first write."""

    def __init__(self, layers: int, capacity: int) -> None:
        self.capacity = capacity
        self.keys: list[Tensor | None] = [None] * layers
        self.values: list[Tensor | None] = [None] * layers
        self.passes: dict[int, Any] = {}  # what an executor prepared for these buffers, by width

    def write(self, layer: int, keys: Tensor, values: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Store `(1, heads, w, width)` at `slots` (w,); returns the layer's whole buffers."""
        if self.keys[layer] is None:
            self.keys[layer] = self._buffer(keys)
            self.values[layer] = self._buffer(values)
        self.keys[layer].index_copy_(2, slots, keys)
        self.values[layer].index_copy_(2, slots, values)
        return self.keys[layer], self.values[layer]

    def move(self, source: Tensor, start: int) -> None:
        """Move the entries at slots `source` (n,) next to each other, from slot `start` on."""
        for buffer in self._buffers():
            buffer[:, :, start : start + len(source)] = buffer.index_select(2, source)

    def copy_from(self, other: KVCache, length: int) -> None:
        """Copy the first `length` entries of another cache of the same model."""
        for layer, (keys, values) in enumerate(zip(other.keys, other.values, strict=True)):
            if keys is None:
                continue
            if self.keys[layer] is None:
                self.keys[layer], self.values[layer] = self._buffer(keys), self._buffer(values)
            self.keys[layer][:, :, :length].copy_(keys[:, :, :length])
            self.values[layer][:, :, :length].copy_(values[:, :, :length])

    def clear(self) -> None:
        for buffer in self._buffers():
            buffer.zero_()

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers())

    def _buffers(self) -> list[Tensor]:
        return [buffer for buffer in (*self.keys, *self.values) if buffer is not None]

    def _buffer(self, like: Tensor) -> Tensor:
        return torch.zeros(*like.shape[:2], self.capacity, like.shape[3], dtype=like.dtype, device=like.device)
