"""A language model: weights, a tokenizer and the way a pass is executed on this device.

Weights are shared by every context and never mutated. A module given by a user is never changed either: what runs is
a twin with modules of its own around the same parameters, or a copy laid out for this device.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from specviz.core.errors import ContextError, LoadError
from specviz.models.checks import check_architecture, check_rewind, probe_logits
from specviz.models.context import Context
from specviz.models.device import use_available_cores
from specviz.models.fixed_width import FixedWidthExecutor
from specviz.models.kv_cache import KVCache
from specviz.models.linear import Linear
from specviz.models.masks import TreeRows
from specviz.models.native import NativeExecutor, supports, supports_int4
from specviz.models.plain import PlainExecutor, twin_of
from specviz.models.strict import MAX_STRICT_WIDTH, strict_cost, strict_width
from specviz.traces import ModelInfo

WEIGHTS = ("native", "plain", "int4")

_BUCKET = 128  # capacities are rounded up to it, so that contexts of like runs share caches
_FREE_CACHES = 6


class Executor(Protocol):
    """How a pass is run: `path` names it; `bytes` and `parameters` are what it holds, `layers` its depth."""

    path: str
    bytes: int
    parameters: int
    layers: int

    def new_cache(self, capacity: int) -> KVCache: ...

    def run(
        self, ids: Tensor, start: Tensor, cache: KVCache, rows: int = 0, hidden: bool = False,
        tree: TreeRows | None = None,
    ) -> Any: ...  # fmt: skip

    def first_layers(self, count: int) -> Executor: ...

    def own_shapes(self, config: Any, count: int) -> dict[str, torch.Size]: ...

    def with_layers(
        self, config: Any, count: int, weights: Mapping[str, Tensor], head_ids: Tensor | None = None
    ) -> Executor: ...

    def embed(self, ids: Tensor) -> Tensor: ...

    def head_rows(self, ids: Tensor | None) -> Linear: ...


class LanguageModel:
    """A transformers causal LM, ready to open contexts.

    `model` is any transformers causal LM and `tokenizer` its tokenizer (None: no text, no EOS); both stay as they are,
    unless `owned` hands the module over, to be emptied as its weights are laid out anew. `eos_ids` adds to the
    tokenizer's EOS. `weights`: "native" writes the passes out where the architecture is known, "plain" runs
    transformers' own forward, "int4" rounds the layers' weights to 4 bits (another model than the one given).
    `strict` runs every pass at one width that gives a row the same bits anywhere. `graphs` captures passes as CUDA
    graphs. Raises LoadError, in words, for what cannot be done here.
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
        weights: str = "native",
        owned: bool = False,
        strict: bool = False,
        graphs: bool = True,
    ) -> None:
        check_architecture(model)
        if weights not in WEIGHTS:
            raise LoadError(f"weights '{weights}' is not known; use {', '.join(WEIGHTS)}.")
        use_available_cores()
        module = model.eval() if owned else twin_of(model)
        config = module.config
        self.tokenizer, self.config = tokenizer, config
        self.source, self.revision, self.note = source, revision, note
        self.architecture = str(config.model_type)
        self.name = name or getattr(config, "name_or_path", "") or self.architecture
        self.device, self.dtype = module.device, module.dtype
        self.vocabulary = int(module.get_output_embeddings().weight.shape[0])
        self.context_length = _context_length(config)
        own = () if tokenizer is None or tokenizer.eos_token_id is None else (int(tokenizer.eos_token_id),)
        self.eos_ids = tuple(dict.fromkeys((*own, *(int(i) for i in eos_ids))))
        self.load_seconds: float | None = None
        self.warm_up_seconds: float | None = None
        self.strict_width: int | None = None
        self._int4 = weights == "int4"
        expected = None if self._int4 else probe_logits(module, self.context_length)
        executor = _make_executor(module, weights, self.context_length, owned)
        self._set_executor(FixedWidthExecutor(executor) if graphs and self.device.type == "cuda" else executor)
        check_rewind(self, expected)
        if strict:
            self._be_strict()

    def open(self, capacity: int) -> Context:
        """A context for up to `capacity` tokens; `close()` it to give its cache back.

        Raises ContextError where that is more than the model's positions.
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

        In bfloat16 on a CPU a lone row, and a lone row left over from a kernel's blocks of 32, takes another path
        through the kernels: slower, and not bit for bit the same. At even widths standard and verify passes agree.
        """
        if self.strict_width is not None and len(ids) <= self.strict_width:
            return functional.pad(ids, (0, self.strict_width - len(ids)))
        return functional.pad(ids, (0, 1)) if self._pads_to_even and len(ids) % 2 else ids

    @property
    def warmup_seconds(self) -> float | None:
        """What was spent on getting ready, off every clock: first passes, and the capture of graphs so far."""
        captured = getattr(self.executor, "capture_seconds", 0.0)
        return (self.warm_up_seconds or 0.0) + captured if self.warm_up_seconds or captured else None

    @property
    def parameters(self) -> int:
        return self.executor.parameters

    @property
    def layers(self) -> int:
        return self.executor.layers

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
            execution=self.executor.path,
            note=" ".join(filter(None, (self.note, getattr(self.executor, "note", None)))) or None,
        )

    def first_layers(self, count: int) -> LanguageModel:
        """The model's first `count` layers under its own final norm and head, sharing its weights (early exit)."""
        if not 1 <= count <= self.layers:
            raise LoadError(
                f"{self.name} has {self.layers} layers; an early exit keeps 1 to {self.layers} of them, not {count}."
            )
        return self._sibling(f"{self.name}, first {count} layers", self.executor.first_layers(count))

    def own_shapes(self, layers: int) -> dict[str, torch.Size]:
        """By the names of transformers' module, the shapes of the weights that `with_layers` takes."""
        return self.executor.own_shapes(self.config, layers)

    def with_layers(
        self, name: str, layers: int, weights: Mapping[str, Tensor], head_ids: Tensor | None = None
    ) -> LanguageModel:
        """A model of as many layers with weights of its own, sharing this one's embedding and head.

        `weights` are those that `own_shapes` names, in this model's dtype and on its device. `head_ids` (n,): all that
        it will be asked for; its logits may then be those of these ids alone, in this order.
        """
        return self._sibling(name, self.executor.with_layers(self.config, layers, weights, head_ids))

    def _sibling(self, name: str, executor: Executor) -> LanguageModel:
        """The same tokenizer, config and device under another name, with another way through the layers."""
        other = copy.copy(self)
        other.name = name
        other.load_seconds = other.warm_up_seconds = other.strict_width = None
        other._set_executor(executor)
        return other

    def _set_executor(self, executor: Executor) -> None:
        self.executor = executor
        self._free: dict[int, list[KVCache]] = {}
        self._lock = threading.Lock()

    def _be_strict(self) -> None:
        self.strict_width = strict_width(self)
        cost = strict_cost(self)
        note = f"strict numerics: every pass runs {self.strict_width} rows, at {cost:.2f} times the cost of one token's"
        self.note = f"{self.note} {note}" if self.note else note

    @property
    def _pads_to_even(self) -> bool:
        # an int4 product grows with its rows, so there the second row would not come free
        return self.device.type == "cpu" and self.dtype is torch.bfloat16 and not self._int4

    @property
    def _slack(self) -> int:
        """Slots that a padded pass may write beyond a context's last token."""
        return max(1, MAX_STRICT_WIDTH if self.strict_width else 0, getattr(self.executor, "slack", 0))


def _make_executor(module: nn.Module, weights: str, context_length: int, owned: bool) -> Executor:
    if weights == "int4":
        return _int4_executor(module, context_length, owned)
    if weights == "plain" or not supports(module):
        return PlainExecutor(module, context_length)
    return NativeExecutor.from_module(module, context_length, owned)


def _int4_executor(module: nn.Module, context_length: int, owned: bool) -> Executor:
    kind = module.config.model_type
    if not supports(module):
        raise LoadError(f"int4 weights are not built for '{kind}'; use native weights.")
    if not supports_int4(module):
        raise LoadError(f"This '{kind}' model's widths or dtype do not suit torch's int4 kernel; use native weights.")
    return NativeExecutor.from_module(module, context_length, owned, int4=True)


def _context_length(config: Any) -> int:
    """Positions that the model was made for; rotary scalings that change with the length are not stretched."""
    length = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if isinstance(rope, dict) and rope.get("rope_type") in ("dynamic", "longrope"):
        length = rope.get("original_max_position_embeddings") or length
    if not length:
        raise LoadError("The model's configuration does not say how many positions it has (max_position_embeddings).")
    return int(length)
