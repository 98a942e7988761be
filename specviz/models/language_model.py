"""A language model: weights, a tokenizer and the way a pass is executed on this device.

Weights are shared by every context and never mutated. A module given by a user is never changed either: what runs is
a twin with modules of its own around the same parameters, or a copy laid out for this device.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from specviz.core.errors import ContextError, LayoutError, LoadError
from specviz.models.checks import check_architecture
from specviz.models.config_facts import context_length
from specviz.models.context import Context
from specviz.models.device import use_available_cores
from specviz.models.end_tokens import read_end_tokens
from specviz.models.fixed_width import FixedWidthExecutor
from specviz.models.kv_cache import KVCache
from specviz.models.linear import Linear
from specviz.models.masks import TreeRows
from specviz.models.native import NativeExecutor, supports_int4
from specviz.models.native_family import is_native
from specviz.models.plain import PlainExecutor, take_any_mask, twin_of
from specviz.models.reference import Reference, read_itself, read_reference
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

    `model` is any transformers causal LM, in PEFT's wrapper too, and `tokenizer` its tokenizer (None: no text). Both
    stay as they are, unless `owned` hands the module over, to be emptied as its weights are laid out anew. A run ends
    at the tokenizer's EOS, at those of the module's generation config, and at `eos_ids`.

    `weights`: "native" writes the passes out where the architecture is known, "plain" runs transformers' own forward,
    "int4" rounds the layers' weights to 4 bits (another model than the one given). `strict` runs every pass at one
    width that gives a row the same bits anywhere. `graphs` captures passes as CUDA graphs. `check` compares what runs
    with the module's own forward pass; without it (a timing of random weights) nothing vouches for the logits.

    Raises LoadError with the reason for a module that cannot be run here, and LayoutError where an `owned` module was
    emptied and then fails its check.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any = None,
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
        check: bool = True,
    ) -> None:
        if weights not in WEIGHTS:
            raise LoadError(f"weights '{weights}' is not known; use {', '.join(WEIGHTS)}.")
        given, model = model, _unwrapped(model)
        check_architecture(model)
        use_available_cores()
        config = model.config
        self.tokenizer, self.config = tokenizer, config
        self.source, self.revision = source, revision
        self.architecture = str(config.model_type)
        self.name = name or getattr(config, "name_or_path", "") or self.architecture
        self.device, self.dtype = model.device, model.dtype
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.context_length = context_length(model)
        ends = read_end_tokens(_listed_end_tokens(model), self.vocabulary)
        own = () if tokenizer is None or tokenizer.eos_token_id is None else (int(tokenizer.eos_token_id),)
        self.eos_ids = tuple(dict.fromkeys((*own, *ends.ids, *(int(i) for i in eos_ids))))
        self.load_seconds: float | None = None
        self.warm_up_seconds: float | None = None
        self.strict_width: int | None = None
        self.reads_trees = True
        self._int4, self._graphs = weights == "int4", graphs and self.device.type == "cuda"
        reference = read_reference(given, self.context_length, self.name) if check and not self._int4 else None
        self.note = " ".join(filter(None, (note, ends.note, reference and reference.note))) or None
        self._execute(take_any_mask(model.eval()) if owned else twin_of(model), weights, owned, reference, check)
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

    def _execute(self, module: nn.Module, weights: str, owned: bool, reference: Reference | None, check: bool) -> None:
        """Take the fastest way of running the module that says what the module says."""
        fault = None
        for make in _executors(module, weights, self.context_length, owned):
            self._set_executor(self._over_fixed_widths(make()))
            if not check:
                return
            expected = reference or read_itself(self)
            fault = expected.fault_of(self)
            if fault is None:
                self.reads_trees = expected.sees_trees(self)
                return
            if owned and self.executor.path == "native":
                raise LayoutError(f"{self.name} cannot run natively: {fault}; load it with weights='plain'.")
        raise LoadError(f"{self.name} cannot be used: {fault}. Choose another model.")

    def _over_fixed_widths(self, executor: Executor) -> Executor:
        return FixedWidthExecutor(executor) if self._graphs and getattr(executor, "static", True) else executor

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


def _executors(module: nn.Module, weights: str, positions: int, owned: bool) -> Iterator[Callable[[], Executor]]:
    """Ways of running a module, the fastest first."""
    if weights == "int4":
        yield lambda: _int4_executor(module, positions, owned)
        return
    if weights == "native" and is_native(module):
        yield lambda: NativeExecutor.from_module(module, positions, owned)
    yield lambda: PlainExecutor(module, positions)
    yield lambda: PlainExecutor(module, positions, own_masks=True)


def _unwrapped(model: nn.Module) -> nn.Module:
    """The transformers model inside a compiled one, or inside PEFT's wrapper, adapters included."""
    model = getattr(model, "_orig_mod", model)
    inside = getattr(model, "get_base_model", None)
    return model if inside is None else inside()


def _listed_end_tokens(model: nn.Module) -> Any:
    return getattr(getattr(model, "generation_config", None), "eos_token_id", None)


def _int4_executor(module: nn.Module, context_length: int, owned: bool) -> Executor:
    kind = module.config.model_type
    if not is_native(module):
        raise LoadError(f"int4 weights are not built for '{kind}'; use native weights.")
    if not supports_int4(module):
        raise LoadError(f"This '{kind}' model's widths or dtype do not suit torch's int4 kernel; use native weights.")
    return NativeExecutor.from_module(module, context_length, owned, int4=True)
