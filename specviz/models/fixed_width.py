"""Run passes at a few fixed widths over static inputs: on CUDA each is captured once as a graph and replayed.

At 0.5 to 3 B parameters a pass on a GPU is bound by kernel launches; a replay launches all kernels at once. The mask is
one of the inputs, so one graph per width serves chains and trees alike. The code is the same on every device and never
makes the host wait; without graphs, the pass runs on its static inputs directly.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from specviz.core.settings import MAX_K
from specviz.models.kv_cache import KVCache
from specviz.models.masks import TreeRows

# one token, and verify passes of k + 1 tokens for k = 1, 2, 4, ... up to the largest; others are padded to the next
WIDTHS = (1, *(2**power + 1 for power in range((MAX_K - 1).bit_length() + 1)))
# a graph holds its intermediate results in memory: below this free share none is captured
_MEMORY_SHARE = 0.05


def next_width(rows: int) -> int | None:
    """The smallest fixed width that holds `rows` rows; None beyond the largest."""
    return next((width for width in WIDTHS if width >= rows), None)


class FixedWidthExecutor:
    """Wraps an executor: passes of up to the largest width run at fixed widths, longer ones (prefill) unchanged."""

    slack = WIDTHS[-1] - 1  # slots that a padded pass may write beyond its last row

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._pool = torch.cuda.graph_pool_handle() if inner.device.type == "cuda" else None
        self.capture_seconds = 0.0
        self.note: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def path(self) -> str:
        return f"{self._inner.path}, CUDA graphs" if self._captures else self._inner.path

    def first_layers(self, count: int) -> FixedWidthExecutor:
        return FixedWidthExecutor(self._inner.first_layers(count))

    def with_layers(self, *arguments: Any) -> FixedWidthExecutor:
        return FixedWidthExecutor(self._inner.with_layers(*arguments))

    def prepare(self, cache: KVCache, rows: int) -> None:
        """Run every width that passes of up to `rows` rows can need, off the clock and before anything is kept."""
        start = time.perf_counter()
        largest = next_width(rows) or WIDTHS[-1]
        for width in (width for width in WIDTHS if width <= largest and width not in cache.passes):
            ids = torch.zeros(width, dtype=torch.long, device=self._inner.device)
            self.run(ids, torch.zeros((), dtype=torch.long, device=self._inner.device), cache)
        self.capture_seconds += time.perf_counter() - start

    def run(
        self, ids: Tensor, start: Tensor, cache: KVCache, rows: int = 0, hidden: bool = False,
        tree: TreeRows | None = None,
    ) -> Any:  # fmt: skip
        width = next_width(len(ids))
        if rows or hidden or width is None or (tree is not None and not tree.whole):
            return self._inner.run(ids, start, cache, rows, hidden, tree)
        if width not in cache.passes:
            cache.passes[width] = _Pass(self._inner, cache, width)
        one = cache.passes[width]
        one.fill(ids, start, tree)
        if one.graph is None and self._captures:
            self._capture(one)
        return one.run()[: len(ids)]

    @property
    def _captures(self) -> bool:
        return self._pool is not None and self.note is None

    def _capture(self, one: _Pass) -> None:
        """Capture a pass, or note why passes run without graphs."""
        free, total = torch.cuda.mem_get_info(self._inner.device)
        if free < _MEMORY_SHARE * total:
            self.note = "passes are not captured as CUDA graphs: the GPU has too little free memory"
            return
        try:
            one.capture(self._pool)
        except RuntimeError as error:
            self.note = f"passes are not captured as CUDA graphs: {str(error).splitlines()[0]}"


class _Pass:
    """A pass of one width over one cache: static ids, start and tree, and the logits of the last replay."""

    def __init__(self, inner: Any, cache: KVCache, width: int) -> None:
        self._inner, self._cache = inner, cache
        self._ids = torch.zeros(width, dtype=torch.long, device=inner.device)
        self._start = torch.zeros((), dtype=torch.long, device=inner.device)
        self._chain = _chain(width, inner.device)
        self._tree = _chain(width, inner.device)
        self._holds_chain = True
        self._logits: Tensor | None = None
        self.graph: torch.cuda.CUDAGraph | None = None

    def fill(self, ids: Tensor, start: Tensor, tree: TreeRows | None) -> None:
        self._ids[: len(ids)].copy_(ids)
        self._ids[len(ids) :].zero_()
        self._start.copy_(start)
        if tree is not None or not self._holds_chain:
            self._tree.ancestors.copy_(self._chain.ancestors)
            self._tree.depths.copy_(self._chain.depths)
        if tree is not None:
            count = len(tree.depths)
            self._tree.ancestors[:count, :count].copy_(tree.ancestors)
            self._tree.depths[:count].copy_(tree.depths)
        self._holds_chain = tree is None

    def run(self) -> Tensor:
        """Logits (width, vocabulary) for the inputs last filled in."""
        if self.graph is None:
            return self._eager()
        self.graph.replay()
        return self._logits.clone()  # the next replay of this width overwrites the buffer

    def capture(self, pool: Any) -> None:
        """Warm up on a side stream, as CUDA requires, then capture. Captured and replayed passes write the same."""
        device = self._inner.device
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._eager()
        torch.cuda.current_stream(device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            self._logits = self._eager()
        self.graph = graph

    def _eager(self) -> Tensor:
        return self._inner.run(self._ids, self._start, self._cache, tree=self._tree)


def _chain(width: int, device: torch.device) -> TreeRows:
    """A chain as a tree: each row follows the one before it."""
    ancestors = torch.ones(width, width, dtype=torch.bool, device=device).tril_()
    return TreeRows(ancestors, torch.arange(width, device=device))
