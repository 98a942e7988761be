"""Passes through transformers' own forward, for every architecture whose attention takes a mask and a cache.

The module is used as given; only the cache that it writes to is ours.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

from specviz.models.config_facts import attention_kinds, chunk_size, depth, sliding_window
from specviz.models.kv_cache import KVCache
from specviz.models.linear import Linear, PlainLinear
from specviz.models.masks import TreeRows, causal_mask, positions
from specviz.models.shallow import own_parameters, put, truncate

_FULL, _SLIDING, _CHUNKED = "full_attention", "sliding_attention", "chunked_attention"


class PlainExecutor:
    """Runs a transformers causal LM over a fixed-capacity cache.

    With `own_masks` the module makes its own masks and positions: it is told how many tokens lie in the cache, and is
    given the keys of these and of the pass, never of slots beyond. It then serves chains only, no trees.
    """

    def __init__(self, module: nn.Module, context_length: int, own_masks: bool = False) -> None:
        self.module = module
        self._limit, self._own_masks = context_length, own_masks
        self.layers = depth(module.config)
        self._kinds = attention_kinds(module.config)
        self._window, self._chunk = sliding_window(module.config), chunk_size(module.config)
        parameters = inspect.signature(module.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._keeps_rows = "logits_to_keep" in parameters

    @property
    def path(self) -> str:
        return "plain, own masks" if self._own_masks else "plain"

    @property
    def static(self) -> bool:
        """Whether a pass depends on the numbers in its tensors alone, so that it may be captured as a graph."""
        return not self._own_masks

    @property
    def device(self) -> torch.device:
        return self.module.device

    @property
    def bytes(self) -> int:
        return sum(tensor.nbytes for tensor in (*self.module.parameters(), *self.module.buffers()))

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.module.parameters())

    def first_layers(self, count: int) -> PlainExecutor:
        """The first `count` layers under the same norm and head, sharing every weight."""
        return PlainExecutor(truncate(twin_of(self.module), count), self._limit, self._own_masks)

    def own_shapes(self, config: Any, count: int) -> dict[str, torch.Size]:
        """By name, the shapes of what `with_layers` takes."""
        return {name: weight.shape for name, weight in own_parameters(truncate(twin_of(self.module), count)).items()}

    def with_layers(
        self, config: Any, count: int, weights: Mapping[str, Tensor], head_ids: Tensor | None = None
    ) -> PlainExecutor:
        """`count` layers and a final norm of other weights; embedding and head are shared, and the head kept whole."""
        return PlainExecutor(put(truncate(twin_of(self.module), count), weights), self._limit, self._own_masks)

    def embed(self, ids: Tensor) -> Tensor:
        """What the first layer is given for `ids` (w,), positions aside: (w, width)."""
        return self.module.get_input_embeddings()(ids)

    def head_rows(self, ids: Tensor | None) -> Linear:
        """The head alone, as a layer from hidden states to the logits of `ids` (n,); None: of every id."""
        head = self.module.get_output_embeddings()
        bias = getattr(head, "bias", None)
        if ids is None:
            return PlainLinear(head.weight, bias)
        return PlainLinear(head.weight[ids], None if bias is None else bias[ids])

    def new_cache(self, capacity: int) -> KVCache:
        return KVCache(self.layers, capacity)

    def run(
        self, ids: Tensor, start: Tensor, cache: KVCache, rows: int = 0, hidden: bool = False,
        tree: TreeRows | None = None,
    ) -> Any:  # fmt: skip
        """Logits `(w, vocabulary)` of a pass over `ids` (w,) behind `start` () entries; the last `rows` only, if set.

        With `hidden`, the pair of logits and the last hidden states `(w, width)`.
        """
        if self._own_masks:
            ids = ids[: self._limit - int(start)]  # rows that padding put behind the last position
        slots = start + torch.arange(len(ids), device=ids.device)
        output = self.module(
            input_ids=ids[None],
            use_cache=True,
            return_dict=True,
            output_hidden_states=hidden,
            **{self._cache_name: _Bridge(cache, slots, self._shown(slots, cache.capacity))},
            **({} if self._own_masks else self._places(slots, cache.capacity, tree)),
            **({"logits_to_keep": rows} if self._keeps_rows else {}),
        )
        logits = output.logits[0]
        return (logits, output.hidden_states[-1][0]) if hidden else logits

    def _shown(self, slots: Tensor, capacity: int) -> int:
        """How many slots a pass is shown: never more than positions, since a module's own buffers may end there."""
        return int(slots[0]) + len(slots) if self._own_masks else min(capacity, self._limit)

    def _places(self, slots: Tensor, capacity: int, tree: TreeRows | None) -> dict[str, Any]:
        """The positions of a pass, and the masks over all slots of the cache: one, or one for each kind of layer."""
        dtype = self.module.dtype

        def mask(kind: str) -> Tensor:
            window = self._window if kind == _SLIDING else None
            chunk = self._chunk if kind == _CHUNKED else None
            return causal_mask(slots, capacity, dtype, window, tree, chunk)[..., : self._limit]

        kinds = dict.fromkeys(self._kinds or (_SLIDING if self._window else _FULL,))
        masks = {kind: mask(kind) for kind in kinds}
        return {
            "position_ids": positions(slots, tree).clamp_max(self._limit - 1)[None],
            "attention_mask": next(iter(masks.values())) if len(masks) == 1 else masks,
        }


class _Bridge(Cache):
    """Our cache in the shape that transformers' attention layers write to; they are shown its first `shown` slots."""

    def __init__(self, cache: KVCache, slots: Tensor, shown: int) -> None:
        super().__init__(layers=[_Layer(cache, slots, index, shown) for index in range(len(cache.keys))])


class _Layer(CacheLayerMixin):
    def __init__(self, cache: KVCache, slots: Tensor, index: int, shown: int) -> None:
        super().__init__()
        self._cache, self._slots, self._index, self._shown = cache, slots, index, shown

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to prepare: the cache makes its buffers at the first write."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        keys, values = self._cache.write(self._index, key_states, value_states, self._slots)
        return keys[:, :, : self._shown], values[:, :, : self._shown]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._shown, 0

    def get_seq_length(self) -> int:
        return self._shown - len(self._slots)

    def get_max_length(self) -> int:
        return self._cache.capacity


def twin_of(module: nn.Module) -> nn.Module:
    """The same parameters under modules of our own, in evaluation mode, with attention that takes any mask."""
    shared = {id(parameter): parameter for parameter in module.parameters()}
    return take_any_mask(copy.deepcopy(module, shared).eval())


def take_any_mask(module: nn.Module) -> nn.Module:
    """Where a module's attention is a kernel of its own making of masks (flash, flex), put one that is given them."""
    for part in module.modules():
        config = getattr(part, "config", None)
        if getattr(config, "_attn_implementation", "eager") not in ("eager", "sdpa"):
            config._attn_implementation = "sdpa" if getattr(module, "_supports_sdpa", False) else "eager"
    return module
