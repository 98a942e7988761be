"""Attention masks over a cache of fixed capacity: what a row sees in a chain, through a window, in a tree.

Caches have full length, so a sliding window is in the mask alone, and rejected tokens can be rolled back.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.core.trees import Tree


@dataclass(frozen=True, slots=True)
class TreeRows:
    """The w rows of a pass, the last of a tree's m rows, which lie next to each other in the cache.

    `ancestors` (w, m) bool: the rows that each row sees, itself included. `depths` (m,): how many rows lie between each
    row and the kept entries, so that its position is the number of kept entries plus its depth.
    """

    ancestors: Tensor
    depths: Tensor

    @classmethod
    def of(cls, tree: Tree, first: int, stop: int, width: int, device: torch.device) -> TreeRows:
        """Rows `first` to `stop` of a tree, padded to `width` with rows that see only themselves."""
        ancestors = torch.zeros(width, first + width, dtype=torch.bool)
        ancestors[:, first:].fill_diagonal_(True)
        ancestors[: stop - first, :stop] = torch.from_numpy(tree.ancestors[first:stop, :stop])
        depths = torch.zeros(first + width, dtype=torch.long)
        depths[:stop] = torch.from_numpy(tree.depths[:stop])
        return cls(ancestors.to(device), depths.to(device))

    @property
    def whole(self) -> bool:
        """Whether the pass holds all of the tree's rows so far."""
        return self.ancestors.shape[0] == self.ancestors.shape[1]

    def positions(self, slots: Tensor) -> Tensor:
        """The position of each row (w,), given the `slots` (w,) that the pass writes to."""
        return self._first(slots) + self.depths[-len(slots) :]

    def visible(self, slots: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """(slots that each row sees (w, capacity), position of the entry in each slot (capacity,))."""
        first = self._first(slots)
        own = first + torch.arange(len(self.depths), device=slots.device)
        kept = (columns < first).repeat(len(slots), 1)
        return kept.index_copy_(1, own, self.ancestors), columns.index_copy(0, own, first + self.depths)

    def _first(self, slots: Tensor) -> Tensor:
        return slots[0] - (len(self.depths) - len(slots))


def positions(slots: Tensor, tree: TreeRows | None) -> Tensor:
    """The position of each row of a pass (w,); in a chain a token's position is its slot."""
    return slots if tree is None else tree.positions(slots)


def causal_mask(
    slots: Tensor,
    capacity: int,
    dtype: torch.dtype,
    window: int | None = None,
    tree: TreeRows | None = None,
    chunk: int | None = None,
) -> Tensor:
    """Additive mask `(1, 1, w, capacity)`: row i sees what it follows, at most `window` positions back with itself.

    That is all slots up to its own `slots[i]`; in a tree the kept entries and its own ancestors. With `chunk` only
    those in its own chunk of so many positions (Llama 4).
    """
    columns = torch.arange(capacity, device=slots.device)
    visible, held = (columns <= slots[:, None], columns) if tree is None else tree.visible(slots, columns)
    if window is not None:
        visible &= held > positions(slots, tree)[:, None] - window
    if chunk is not None:
        visible &= held // chunk == positions(slots, tree)[:, None] // chunk
    mask = torch.zeros(visible.shape, dtype=dtype, device=slots.device)
    return mask.masked_fill_(~visible, torch.finfo(dtype).min)[None, None]
