"""A language model: weights, a tokenizer and the way a pass is executed on this device.

Weights are shared by every context and never mutated. A module given by a user is never changed either: what runs is
a twin with modules of its own around the same parameters.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from specviz.errors import ContextError, LoadError
from specviz.models.cache import KVCache
from specviz.models.checks import check_architecture, check_rewind
from specviz.models.context import Context
from specviz.models.device import use_available_cores
from specviz.models.plain import PlainExecutor
from specviz.traces import ModelInfo

_BUCKET = 128  # capacities are rounded up to it, so that contexts of like runs share caches
_FREE_CACHES = 6


class LanguageModel:
    """A transformers causal LM, ready to open contexts.

    `model` is any transformers causal LM and `tokenizer` its tokenizer (None: no text, no EOS); both stay as they are.
    `eos_ids` adds to the tokenizer's EOS. Raises LoadError, in words, for an architecture whose cache cannot be rewound.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        name: str | None = None,
        source: str = "module",
        revision: str | None = None,
        eos_ids: Iterable[int] = (),
        note: str | None = None,
    ) -> None:
        check_architecture(model)
        use_available_cores()
        twin = _twin(model)
        self.tokenizer = tokenizer
        self.source, self.revision, self.note = source, revision, note
        self.architecture = str(twin.config.model_type)
        self.name = name or getattr(twin.config, "name_or_path", "") or self.architecture
        self.device, self.dtype = twin.device, twin.dtype
        self.config = twin.config
        self.vocabulary = int(twin.get_output_embeddings().weight.shape[0])
        self.context_length = _context_length(twin.config)
        self.parameters = sum({id(p): p.numel() for p in twin.parameters()}.values())
        own = () if tokenizer is None or tokenizer.eos_token_id is None else (int(tokenizer.eos_token_id),)
        self.eos_ids = tuple(dict.fromkeys((*own, *(int(i) for i in eos_ids))))
        self.load_seconds: float | None = None
        self.warmup_seconds: float | None = None
        self.executor = PlainExecutor(twin, self.context_length)
        self._free: dict[int, list[KVCache]] = {}
        self._lock = threading.Lock()
        check_rewind(self)

    def open(self, capacity: int) -> Context:
        """A context for up to `capacity` tokens; `close()` it to give its cache back.

        Raises ContextError where that is more than the model's positions, or than the device's memory.
        """
        if capacity > self.context_length:
            raise ContextError(f"{self.name} reads at most {self.context_length} tokens; {capacity} were asked for.")
        size = -(-(capacity + self._slack) // _BUCKET) * _BUCKET
        with self._lock:
            free = self._free.setdefault(size, [])
            cache = free.pop() if free else self.executor.new_cache(size)
        return Context(self, cache, capacity)

    @torch.inference_mode()
    def give_back(self, cache: KVCache) -> None:
        """Take a cache back into the pool, emptied."""
        cache.clear()
        with self._lock:
            if sum(map(len, self._free.values())) >= _FREE_CACHES:
                self._free.clear()
            self._free.setdefault(cache.capacity, []).append(cache)

    def pad(self, ids: Tensor) -> Tensor:
        """Ids widened to a width that this device runs well; the added rows are computed and never kept.

        In bfloat16 on a CPU a lone row takes another path through the kernels than a row among others: slower, and
        not bit for bit the same. With two rows a standard step and a verify pass agree.
        """
        if self._pads_single and len(ids) == 1:
            return functional.pad(ids, (0, 1))
        return ids

    @property
    def info(self) -> ModelInfo:
        """The model as loaded, for a trace's header; its role is the target's until a lane says otherwise."""
        return ModelInfo(
            role="target",
            name=self.name,
            source=self.source,
            revision=self.revision,
            architecture=self.architecture,
            parameters=self.parameters,
            vocabulary=self.vocabulary,
            context_length=self.context_length,
            bytes=self.executor.bytes,
            path=self.executor.path,
            note=self.note,
        )

    def first_layers(self, count: int) -> LanguageModel:
        """The model's first `count` layers under its own final norm and head, sharing its weights (early exit)."""
        total = int(self.config.num_hidden_layers)
        if not 1 <= count <= total:
            raise LoadError(f"{self.name} has {total} layers; an early exit keeps 1 to {total} of them, not {count}.")
        shallow = _truncate(_twin(self.executor.module), count)
        return LanguageModel(
            shallow, self.tokenizer, name=f"{self.name}, first {count} layers", source=self.source, eos_ids=self.eos_ids
        )

    @property
    def _pads_single(self) -> bool:
        return self.device.type == "cpu" and self.dtype is torch.bfloat16

    @property
    def _slack(self) -> int:
        return 1 if self._pads_single else 0


def _twin(module: nn.Module) -> nn.Module:
    """The same parameters under modules of our own, in evaluation mode, with attention that takes any mask."""
    shared = {id(parameter): parameter for parameter in module.parameters()}
    twin = copy.deepcopy(module, shared).eval()
    for part in twin.modules():
        if hasattr(part, "config") and hasattr(part.config, "_attn_implementation"):
            capped = getattr(part.config, "attn_logit_softcapping", None)  # SDPA has no soft cap
            part.config._attn_implementation = (
                "eager" if capped or not getattr(part, "_supports_sdpa", True) else "sdpa"
            )
    return twin


def _truncate(module: nn.Module, count: int) -> nn.Module:
    """Cut the decoder's layer list, wherever the architecture keeps it, and say so in every config."""
    total = int(module.config.num_hidden_layers)
    for owner in module.modules():
        for name, child in owner.named_children():
            if isinstance(child, nn.ModuleList) and len(child) == total:
                setattr(owner, name, child[:count])
        config = getattr(owner, "config", None)
        if config is not None and getattr(config, "num_hidden_layers", None) == total:
            config.num_hidden_layers = count
            if getattr(config, "layer_types", None):
                config.layer_types = config.layer_types[:count]
    return module


def _context_length(config: Any) -> int:
    """Positions that the model was made for; rotary scalings that change with the length are not stretched."""
    length = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if isinstance(rope, dict) and rope.get("rope_type") in ("dynamic", "longrope"):
        length = rope.get("original_max_position_embeddings") or length
    if not length:
        raise LoadError("The model's configuration does not say how many positions it has (max_position_embeddings).")
    return int(length)
