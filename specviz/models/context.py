"""Context: one cache of a model, the passes over it, and how many of its entries are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from specviz.core.errors import ContextError, InputError
from specviz.core.trees import Tree
from specviz.models.kv_cache import KVCache
from specviz.models.masks import TreeRows
from specviz.models.runnable import Runnable

_PREFILL_CHUNK = 512


class Context:
    """The tokens that a model has read. `length` entries are kept; a pass adds its rows after them."""

    def __init__(self, model: Runnable, cache: KVCache, capacity: int) -> None:
        self.model = model
        self.capacity = capacity
        self.length = 0
        self._cache: KVCache | None = cache
        self._pass_start = 0

    @torch.inference_mode()
    def forward(self, ids: Tensor | Sequence[int], parents: Sequence[int] | None = None, hidden: bool = False) -> Any:
        """One pass over `ids` (w,): logits `(w, vocabulary)`, whose row i is the prediction after ids[i].

        For a tree, `parents` (w,) gives the parent of each row, -1 for the kept entries; a row then sees the kept
        entries and its own ancestors, and their number is its position. All w rows are kept until `keep` or `rewind`
        drops some. With `hidden`, returns (logits, last hidden states `(w, width)`). Raises ContextError beyond the
        capacity, and InputError for parents that form no tree.
        """
        ids = self._tensor(ids)
        tree = None if parents is None else _tree(parents, len(ids))
        if tree is not None and not self.model.reads_trees:
            raise ContextError(f"{self.model.name} cannot read a tree of drafts; choose a draft that writes a chain.")
        if self.length + len(ids) > self.capacity:
            raise ContextError(f"This context holds {self.capacity} tokens; {self.length + len(ids)} do not fit.")
        width = self.model.strict_width or len(ids)
        parts = [self._run(part, piece * width, hidden, tree) for piece, part in enumerate(ids.split(width))]
        self._pass_start = self.length
        self.length += len(ids)
        if not hidden:
            return parts[0] if len(parts) == 1 else torch.cat(parts)
        logits, states = zip(*parts, strict=True)
        return torch.cat(logits), torch.cat(states)

    @torch.inference_mode()
    def prepare(self, rows: int) -> None:
        """Prepare for passes of up to `rows` rows, off the clock and before anything is read."""
        if hasattr(self.model.executor, "prepare"):
            self.model.executor.prepare(self._live(), rows)

    @torch.inference_mode()
    def prefill(self, ids: Tensor | Sequence[int]) -> None:
        """Read `ids` (m,), m >= 0, and keep them. Logits are computed for one row per chunk alone."""
        ids = self._tensor(ids)
        if self.length + len(ids) > self.capacity:
            raise ContextError(f"This context holds {self.capacity} tokens; the {len(ids)} of the prompt do not fit.")
        for chunk in ids.split(_PREFILL_CHUNK):
            if len(chunk):
                start = torch.full((), self.length, device=self.model.device)
                self.model.executor.run(self.model.pad(chunk), start, self._live(), rows=1)
                self.length += len(chunk)
        self._pass_start = self.length

    @torch.inference_mode()
    def keep(self, rows: int | Sequence[int]) -> None:
        """Keep these rows of the last pass, moved together, and drop the rest; a number keeps that many first rows.

        Rows are in ascending order, like a path through a tree.
        """
        if not isinstance(rows, int):
            moved = [row for place, row in enumerate(rows) if row != place]  # the others are in place already
            if moved:
                source = self._pass_start + torch.tensor(moved, device=self.model.device)
                self._live().move(source, self._pass_start + len(rows) - len(moved))
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
        """Return the cache to the model's pool; closing twice is harmless."""
        if self._cache is not None:
            self.model.give_back(self._cache)
            self._cache = None

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, ids: Tensor, offset: int, hidden: bool, tree: Tree | None) -> Any:
        """A pass over `ids` (w,), `offset` slots after the kept entries; rows that padding added are cut off again."""
        start = torch.full((), self.length + offset, device=self.model.device)  # filled on the device: no copy, no wait
        padded = self.model.pad(ids)
        rows = () if tree is None else (TreeRows.of(tree, offset, offset + len(ids), len(padded), ids.device),)
        output = self.model.executor.run(padded, start, self._live(), 0, hidden, *rows)
        if hidden:
            return output[0][: len(ids)], output[1][: len(ids)]
        return output[: len(ids)]

    def _live(self) -> KVCache:
        if self._cache is None:
            raise ContextError("This context is closed.")
        return self._cache

    def _tensor(self, ids: Tensor | Sequence[int]) -> Tensor:
        return torch.as_tensor(ids, dtype=torch.long, device=self.model.device)


def _tree(parents: Sequence[int], rows: int) -> Tree | None:
    """The tree of a pass; None for a chain, which the plain causal mask serves."""
    tree = Tree(tuple(parents))
    if len(tree) != rows:
        raise InputError(f"A pass over {rows} tokens was given the parents of {len(tree)}.")
    return None if tree.is_chain else tree
