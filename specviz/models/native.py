"""Passes written out for the Llama family: fused projections, a fixed cache, nothing allocated that can be reused.

The arithmetic is transformers' own (RMSNorm, rotary positions, grouped-query attention, SwiGLU); what differs is how it
is laid out: query, key and value in one product, gate and up in one, each weight in the form that multiplies fastest,
and query heads folded into rows so that grouped keys are never repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from specviz.models.config_facts import attention_kinds, sliding_window
from specviz.models.kv_cache import KVCache
from specviz.models.linear import Int4Linear, Linear, PlainLinear, int4_fits, make_linear
from specviz.models.masks import TreeRows, causal_mask, positions
from specviz.models.release import release
from specviz.models.shallow import own_parameters, put, skeleton

Form = Callable[[Tensor, Tensor | None], Linear]
Keep = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class _Layer:
    """One decoder layer's weights. `window` is its sliding window, None for full attention."""

    input_norm: Tensor
    qkv: Linear
    q_norm: Tensor | None
    k_norm: Tensor | None
    output: Linear
    middle_norm: Tensor
    gate_up: Linear
    down: Linear
    window: int | None

    @property
    def linears(self) -> tuple[Linear, ...]:
        return (self.qkv, self.output, self.gate_up, self.down)

    @property
    def norms(self) -> tuple[Tensor, ...]:
        norms = (self.input_norm, self.q_norm, self.k_norm, self.middle_norm)
        return tuple(norm for norm in norms if norm is not None)


@dataclass(frozen=True, slots=True)
class _Shape:
    heads: int
    groups: int  # key/value heads
    width: int  # of a head
    epsilon: float
    scale: float
    limit: int  # positions


def supports_int4(module: nn.Module) -> bool:
    """Whether every layer's weights suit torch's int4 kernel on this device."""
    parts = [part for part in module.model.layers[0].modules() if isinstance(part, nn.Linear)]
    return module.device.type in ("cpu", "cuda") and all(int4_fits(part.weight) for part in parts)


class NativeExecutor:
    """Runs a model of the Llama family; made by `from_module`, or cut from another by `first_layers`."""

    def __init__(
        self,
        embedding: Tensor,
        layers: tuple[_Layer, ...],
        norm: Tensor,
        head: Linear,
        tied: bool,
        rotary: nn.Module,
        shape: _Shape,
        path: str,
    ) -> None:
        self.path = path
        self._embedding, self._layers, self._norm, self._head, self._tied = embedding, layers, norm, head, tied
        self._rotary, self._shape = rotary, shape
        self._cosines = self._sines = embedding.new_empty(0, shape.width)

    @classmethod
    @torch.inference_mode()
    def from_module(cls, module: nn.Module, context_length: int, owned: bool, int4: bool = False) -> NativeExecutor:
        """Take the weights over. With `owned` each original is dropped as soon as its copy is made.

        `int4` rounds the layers' weights to 4 bits; embedding, norms and head stay as they are.
        """
        model, config = module.model, module.config
        form = Int4Linear if int4 else make_linear
        attention = model.layers[0].self_attn
        shape = _Shape(
            config.num_attention_heads, config.num_key_value_heads, attention.head_dim,
            model.norm.variance_epsilon, attention.scaling, context_length,
        )  # fmt: skip
        # a checkpoint's tensors may be views of one mapped file, which a single one of them would keep in memory
        keep = torch.clone if owned else torch.Tensor.detach
        embedding = keep(model.embed_tokens.weight)
        tied = module.lm_head.weight is model.embed_tokens.weight
        head = make_linear(embedding if tied else module.lm_head.weight.detach(), _bias(module.lm_head))
        if owned:
            _drop(model.embed_tokens, True)
            _drop(module.lm_head, not isinstance(head, PlainLinear))
        layers = _take_all(module, owned, form, keep)
        path = "native int4" if int4 else "native"
        return cls(embedding, layers, keep(model.norm.weight), head, tied, model.rotary_emb, shape, path)

    @property
    def device(self) -> torch.device:
        return self._embedding.device

    @property
    def layers(self) -> int:
        return len(self._layers)

    @property
    def bytes_read(self) -> int:
        """What a pass reads of the weights; of the embedding it reads a few rows only."""
        return sum(part.bytes for part in self._linears()) + sum(norm.nbytes for norm in self._norms())

    @property
    def bytes(self) -> int:
        """What the weights take; a head reordered from the embedding is a copy, and counted."""
        return self._embedding.nbytes + self.bytes_read - (self._head.bytes if self._shares_head() else 0)

    @property
    def parameters(self) -> int:
        """Distinct parameters: a head tied to the embedding counts once, whatever copies were made."""
        parts = sum(part.parameters for part in self._linears()) - (self._head.parameters if self._tied else 0)
        return parts + sum(norm.numel() for norm in self._norms()) + self._embedding.numel()

    def first_layers(self, count: int) -> NativeExecutor:
        """The first `count` layers under the same norm and head, sharing every weight."""
        return NativeExecutor(
            self._embedding,
            self._layers[:count],
            self._norm,
            self._head,
            self._tied,
            self._rotary,
            self._shape,
            self.path,
        )

    def own_shapes(self, config: Any, count: int) -> dict[str, torch.Size]:
        """By name, the shapes of what `with_layers` takes."""
        return {name: weight.shape for name, weight in own_parameters(skeleton(config, count)).items()}

    @torch.inference_mode()
    def with_layers(
        self, config: Any, count: int, weights: Mapping[str, Tensor], head_ids: Tensor | None = None
    ) -> NativeExecutor:
        """`count` layers and a final norm of other weights under the same embedding and head, which are shared.

        `config` is the model's own. With `head_ids` (n,) the head has these rows alone, and a pass gives n logits.
        """
        module = put(skeleton(config, count), weights)
        layers = _take_all(module, False, make_linear, torch.Tensor.detach)
        norm, head = module.model.norm.weight.detach(), self.head_rows(head_ids)
        return NativeExecutor(
            self._embedding, layers, norm, head, self._tied, self._rotary, self._shape, self.path.split()[0]
        )

    def embed(self, ids: Tensor) -> Tensor:
        """What the first layer is given for `ids` (w,): (w, width)."""
        return functional.embedding(ids, self._embedding)

    def head_rows(self, ids: Tensor | None) -> Linear:
        """The head alone, as a layer from hidden states to the logits of `ids` (n,); None: of every id."""
        return self._head if ids is None else make_linear(*self._head.outputs(ids))

    def new_cache(self, capacity: int) -> KVCache:
        return KVCache(len(self._layers), capacity)

    def run(
        self, ids: Tensor, start: Tensor, cache: KVCache, rows: int = 0, hidden: bool = False,
        tree: TreeRows | None = None,
    ) -> Any:  # fmt: skip
        """Logits `(w, vocabulary)` of a pass over `ids` (w,) behind `start` () entries; the last `rows` only, if set.

        With `hidden`, the pair of logits and the last hidden states `(w, width)`.
        """
        states = self.through(self.embed(ids), start, cache, tree)
        logits = self._head(states[-rows:] if rows else states)
        return (logits, states) if hidden else logits

    def through(self, states: Tensor, start: Tensor, cache: KVCache, tree: TreeRows | None = None) -> Tensor:
        """The last hidden states (w, width) of rows that enter the first layer as `states` (w, width)."""
        slots = start + torch.arange(len(states), device=states.device)
        turn = self._turn(positions(slots, tree), cache.capacity)
        masks = self._masks(slots, cache.capacity, tree)
        for index, layer in enumerate(self._layers):
            attended = self._attend(index, layer, states, turn, masks[layer.window], slots, cache)
            states = states + layer.output(attended)
            gate, up = layer.gate_up(self._normalise(states, layer.middle_norm)).chunk(2, -1)
            states = states + layer.down(functional.silu(gate).mul_(up))
        return self._normalise(states, self._norm)

    def _linears(self) -> tuple[Linear, ...]:
        return (self._head, *(part for layer in self._layers for part in layer.linears))

    def _norms(self) -> tuple[Tensor, ...]:
        return (self._norm, *(norm for layer in self._layers for norm in layer.norms))

    def _shares_head(self) -> bool:
        whole = self._head.parameters == self._embedding.numel()
        return self._tied and whole and isinstance(self._head, PlainLinear)

    def _attend(
        self, index: int, layer: _Layer, states: Tensor, turn: tuple[Tensor, Tensor], mask: Tensor, slots: Tensor,
        cache: KVCache,
    ) -> Tensor:  # fmt: skip
        shape, rows = self._shape, len(states)
        mixed = layer.qkv(self._normalise(states, layer.input_norm)).view(rows, -1, shape.width)
        turned, values = mixed[:, : shape.heads + shape.groups], mixed[:, shape.heads + shape.groups :]
        if layer.q_norm is not None:
            turned = self._normalise_heads(turned, layer)
        turned = _rotate(turned, *turn)
        queries, keys = turned[:, : shape.heads], turned[:, shape.heads :]
        keys, values = cache.write(index, keys.transpose(0, 1)[None], values.transpose(0, 1)[None], slots)
        # the heads that share a key become rows of it: (1, groups, heads / groups * w, width)
        queries = queries.view(rows, shape.groups, -1, shape.width).permute(1, 2, 0, 3)
        queries = queries.reshape(1, shape.groups, -1, shape.width)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=shape.scale)
        mixed = mixed.view(shape.groups, -1, rows, shape.width).permute(2, 0, 1, 3)
        return mixed.reshape(rows, -1)

    def _normalise(self, states: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(states, weight, self._shape.epsilon)

    def _normalise_heads(self, turned: Tensor, layer: _Layer) -> Tensor:
        queries, keys = turned.split((self._shape.heads, self._shape.groups), 1)
        return torch.cat([self._normalise(queries, layer.q_norm), self._normalise(keys, layer.k_norm)], 1)

    def _masks(self, slots: Tensor, capacity: int, tree: TreeRows | None) -> dict[int | None, Tensor]:
        """A mask for each window that a layer has, its rows repeated for the folded heads."""
        fold = self._shape.heads // self._shape.groups
        windows = {layer.window for layer in self._layers}
        dtype = self._embedding.dtype
        masks = {window: causal_mask(slots, capacity, dtype, window, tree) for window in windows}
        return {window: mask.repeat(1, 1, fold, 1) for window, mask in masks.items()}

    def _turn(self, places: Tensor, capacity: int) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines of the rows' positions, each (w, 1, width)."""
        if len(self._cosines) < min(capacity, self._shape.limit):
            self._grow_tables(capacity)
        places = places.clamp_max(len(self._cosines) - 1)
        return self._cosines[places][:, None], self._sines[places][:, None]

    def _grow_tables(self, capacity: int) -> None:
        count = min(self._shape.limit, 1 << (capacity - 1).bit_length())
        places = torch.arange(count, device=self._embedding.device)[None]
        cosines, sines = self._rotary(self._embedding[:1], places)
        half = self._shape.width // 2
        self._cosines = cosines[0]
        # x * cos + roll(x) * sin with the first half's sines negated is the rotation of both halves
        self._sines = torch.cat([-sines[0, :, :half], sines[0, :, half:]], -1)


def rms_norm(states: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """RMSNorm (Zhang and Sennrich 2019) over the last dimension, rounded as transformers rounds it."""
    return functional.rms_norm(states, weight.shape, None, epsilon) * weight


def _rotate(heads: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary positions (Su et al. 2021) on (w, heads, width)."""
    return heads * cosines + heads.roll(heads.shape[-1] // 2, -1) * sines


def _take(layer: nn.Module, window: int | None, owned: bool, form: Form, keep: Keep) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    return _Layer(
        input_norm=keep(layer.input_layernorm.weight),
        qkv=_fuse((attention.q_proj, attention.k_proj, attention.v_proj), owned, form),
        q_norm=_norm(attention, "q_norm", keep),
        k_norm=_norm(attention, "k_norm", keep),
        output=_fuse((attention.o_proj,), owned, form),
        middle_norm=keep(layer.post_attention_layernorm.weight),
        gate_up=_fuse((mlp.gate_proj, mlp.up_proj), owned, form),
        down=_fuse((mlp.down_proj,), owned, form),
        window=window,
    )


def _take_all(module: nn.Module, owned: bool, form: Form, keep: Keep) -> tuple[_Layer, ...]:
    layers = module.model.layers
    kinds = attention_kinds(module.config) or ("sliding_attention",) * len(layers)
    window = sliding_window(module.config)
    return tuple(
        _take(layer, window if kind == "sliding_attention" else None, owned, form, keep)
        for layer, kind in zip(layers, kinds, strict=True)
    )


def _fuse(parts: tuple[nn.Linear, ...], owned: bool, form: Form) -> Linear:
    """One linear layer whose output is the parts' outputs side by side."""
    weight = torch.cat([part.weight.detach() for part in parts]) if len(parts) > 1 else parts[0].weight.detach()
    biases = [_bias(part) for part in parts]
    bias = None if all(b is None for b in biases) else torch.cat(
        [weight.new_zeros(part.out_features) if b is None else b for part, b in zip(parts, biases, strict=True)]
    )  # fmt: skip
    made = form(weight, bias)
    if owned:
        for part in parts:
            _drop(part, copied=len(parts) > 1 or not isinstance(made, PlainLinear))
    return made


def _bias(part: nn.Linear) -> Tensor | None:
    return None if part.bias is None else part.bias.detach()


def _drop(part: nn.Module, copied: bool) -> None:
    """Take a weight from a module that will not be used again, and free its memory if it was copied."""
    if part.weight is not None and copied:
        release(part.weight.detach())
    part.weight = None


def _norm(attention: nn.Module, name: str, keep: Keep) -> Tensor | None:
    norm = getattr(attention, name, None)
    return None if norm is None else keep(norm.weight)
