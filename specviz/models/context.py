"""A context: one cache of one model, the passes over it, and how many of its entries are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from specviz.errors import ContextError

if TYPE_CHECKING:
    from specviz.models.cache import KVCache
    from specviz.models.language_model import LanguageModel

_PREFILL_CHUNK = 512


class Context:
    """The tokens that a model has read. `length` entries are kept; a pass adds its rows behind them."""

    def __init__(self, model: LanguageModel, cache: KVCache, capacity: int) -> None:
        self.model = model
        self.capacity = capacity
        self.length = 0
        self._cache: KVCache | None = cache
        self._pass_start = 0

    @torch.inference_mode()
    def forward(self, ids: Tensor | Sequence[int], parents: Sequence[int] | None = None, hidden: bool = False) -> Any:
        """One pass over `ids` (w,): logits `(w, vocabulary)`; row i is what the model says after ids[i].

        All w rows are kept until `keep` or `rewind` says otherwise. With `hidden`, a pair with the last hidden
        states `(w, width)`. Raises ContextError beyond the capacity, and for `parents`.
        """
        if parents is not None:
            raise ContextError("Drafting a tree is not built yet: propose a chain of tokens (parents=None).")
        ids = self._tensor(ids)
        width = len(ids)
        output = self._run(self.model.pad(ids), 0, hidden)
        self._advance(width)
        if hidden:
            logits, states = output
            return logits[:width], states[:width]
        return output[:width]

    @torch.inference_mode()
    def prefill(self, ids: Tensor | Sequence[int]) -> None:
        """Read `ids` (m,), m >= 0, and keep them; no logits are made but one row's a chunk."""
        for chunk in self._tensor(ids).split(_PREFILL_CHUNK):
            if len(chunk):
                self._run(self.model.pad(chunk), 1, False)
                self._advance(len(chunk))

    @torch.inference_mode()
    def keep(self, rows: int | Sequence[int]) -> None:
        """Of the last pass keep these rows, moved together, and drop the rest; a number keeps the first so many."""
        if not isinstance(rows, int):
            if list(rows) == list(range(len(rows))):
                rows = len(rows)
            else:
                source = self._pass_start + torch.tensor(list(rows), device=self.model.device)
                self._live().move(source, self._pass_start)
                rows = len(rows)
        self.length = self._pass_start + rows
        self._pass_start = self.length

    def rewind(self, count: int) -> None:
        """Drop the last `count` entries."""
        if not 0 <= count <= self.length:
            raise ContextError(f"A context of {self.length} tokens cannot be rewound by {count}.")
        self.length -= count
        self._pass_start = self.length

    @torch.inference_mode()
    def copy_from(self, other: Context) -> None:
        """Become a copy of another context of the same model."""
        if other.model is not self.model or other.length > self.capacity:
            raise ContextError("A context can only be copied from one of the same model that fits into it.")
        self._live().copy_from(other._live(), other.length)
        self.length = self._pass_start = other.length

    def close(self) -> None:
        """Give the cache back to the model's pool; closing twice does no harm."""
        if self._cache is not None:
            self.model.give_back(self._cache)
            self._cache = None

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, ids: Tensor, rows: int, hidden: bool) -> Any:
        if self.length + len(ids) > self._live().capacity:
            raise ContextError(f"This context holds {self.capacity} tokens and is full.")
        start = torch.full((), self.length, device=self.model.device)  # filled there: no copy, no waiting
        return self.model.executor.run(ids, start, self._live(), rows, hidden)

    def _advance(self, width: int) -> None:
        if self.length + width > self.capacity:
            raise ContextError(f"This context holds {self.capacity} tokens; {self.length + width} do not fit.")
        self._pass_start = self.length
        self.length += width

    def _live(self) -> KVCache:
        if self._cache is None:
            raise ContextError("This context is closed.")
        return self._cache

    def _tensor(self, ids: Tensor | Sequence[int]) -> Tensor:
        return torch.as_tensor(ids, dtype=torch.long, device=self.model.device)
