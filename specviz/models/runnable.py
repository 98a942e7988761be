"""Runnable: what contexts and self-tests need of a model, so that they depend on no particular one."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor


class Runnable(Protocol):
    """A model whose passes can be run; `LanguageModel` is one."""

    name: str
    device: torch.device
    dtype: torch.dtype
    vocabulary: int
    context_length: int
    executor: Any
    reads_trees: bool
    strict_width: int | None

    def pad(self, ids: Tensor) -> Tensor:
        """The rows that a pass over `ids` (w,) runs."""

    def open(self, capacity: int) -> Any:
        """A Context of so many entries."""

    def give_back(self, cache: Any) -> None:
        """Take back the cache of a closed context."""
