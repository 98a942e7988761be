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

from specviz.models.kv_cache import KVCache
from specviz.models.linear import Linear, PlainLinear
from specviz.models.masks import TreeRows, causal_mask, positions
from specviz.models.shallow import own_parameters, put, truncate


class PlainExecutor:
    """Runs a transformers causal LM over a fixed-capacity cache."""

    path = "plain"

    def __init__(self, module: nn.Module, context_length: int) -> None:
        self.module = module
        self._limit = context_length
        self.layers = int(module.config.num_hidden_layers)
        self._kinds = tuple(getattr(module.config, "layer_types", None) or ())
        self._window = sliding_window(module.config)
        parameters = inspect.signature(module.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._keeps_rows = "logits_to_keep" in parameters

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
        return PlainExecutor(truncate(twin_of(self.module), count), self._limit)

    def own_shapes(self, config: Any, count: int) -> dict[str, torch.Size]:
        """By name, the shapes of what `with_layers` takes."""
        return {name: weight.shape for name, weight in own_parameters(truncate(twin_of(self.module), count)).items()}

    def with_layers(
        self, config: Any, count: int, weights: Mapping[str, Tensor], head_ids: Tensor | None = None
    ) -> PlainExecutor:
        """`count` layers and a final norm of other weights; embedding and head are shared, and the head kept whole."""
        return PlainExecutor(put(truncate(twin_of(self.module), count), weights), self._limit)

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
        slots = start + torch.arange(len(ids), device=ids.device)
        bridge = _Bridge(cache, slots)
        arguments: dict[str, Any] = {self._cache_name: bridge}
        if self._keeps_rows:
            arguments["logits_to_keep"] = rows
        output = self.module(
            input_ids=ids[None],
            position_ids=positions(slots, tree).clamp_max(self._limit - 1)[None],
            attention_mask=self._mask(slots, cache.capacity, tree),
            use_cache=True,
            return_dict=True,
            output_hidden_states=hidden,
            **arguments,
        )
        logits = output.logits[0]
        return (logits, output.hidden_states[-1][0]) if hidden else logits

    def _mask(self, slots: Tensor, capacity: int, tree: TreeRows | None) -> Tensor | dict[str, Tensor]:
        dtype = self.module.dtype
        if self._window is None:
            return causal_mask(slots, capacity, dtype, tree=tree)
        windowed = causal_mask(slots, capacity, dtype, self._window, tree)
        if len(set(self._kinds)) <= 1:
            return windowed
        return {"full_attention": causal_mask(slots, capacity, dtype, tree=tree), "sliding_attention": windowed}


class _Bridge(Cache):
    """Our cache in the shape that transformers' attention layers write to."""

    def __init__(self, cache: KVCache, slots: Tensor) -> None:
        super().__init__(layers=[_Layer(cache, slots, index) for index in range(len(cache.keys))])


class _Layer(CacheLayerMixin):
    def __init__(self, cache: KVCache, slots: Tensor, index: int) -> None:
        super().__init__()
        self._cache, self._slots, self._index = cache, slots, index

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to prepare: the cache makes its buffers at the first write."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        return self._cache.write(self._index, key_states, value_states, self._slots)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.capacity, 0

    def get_seq_length(self) -> int:
        return self._cache.capacity - len(self._slots)

    def get_max_length(self) -> int:
        return self._cache.capacity


def twin_of(module: nn.Module) -> nn.Module:
    """The same parameters under modules of our own, in evaluation mode, with attention that takes any mask."""
    shared = {id(parameter): parameter for parameter in module.parameters()}
    twin = copy.deepcopy(module, shared).eval()
    for part in twin.modules():
        if hasattr(part, "config") and hasattr(part.config, "_attn_implementation"):
            capped = getattr(part.config, "attn_logit_softcapping", None)  # SDPA has no soft cap
            plain = capped or not getattr(part, "_supports_sdpa", True)
            part.config._attn_implementation = "eager" if plain else "sdpa"
    return twin


def sliding_window(config: Any) -> int | None:
    """The window of a model whose layers have one: all of them, or those that `layer_types` names."""
    kinds = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None)
    if kinds is not None and "sliding_attention" not in kinds:
        return None
    if kinds is None and not getattr(config, "use_sliding_window", True):
        return None
    return window
