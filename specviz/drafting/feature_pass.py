"""Passes of a feature head: one decoder layer on the target's last hidden state and the embedding of the next token.

As EAGLE (Li et al. 2024): row t reads the target's features at position t - 1 and token t, both normalised, and gives
the features at position t, which the target's own head turns into what follows token t. The layer is of the Llama
family whatever the target is. Its weights come from a file; embedding and head are the target's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from specviz.core.errors import InputError, LoadError
from specviz.models import LanguageModel
from specviz.models.kv_cache import KVCache
from specviz.models.linear import make_linear
from specviz.models.native import NativeExecutor, rms_norm
from specviz.models.shallow import own_parameters, put

FUSE, TOKEN_NORM, FEATURE_NORM = "fuse.weight", "token_norm.weight", "feature_norm.weight"
_MOST = 1 << 16  # no width of a model's is larger


@dataclass(frozen=True, slots=True)
class HeadShape:
    """Sizes of the layer: `width` of the target's features, of the middle, heads, groups that share keys, of a head.

    `theta`: base of the rotary positions; `epsilon`: of the norms; `positions`: as many as the target reads.
    """

    width: int
    middle: int
    heads: int
    groups: int
    head_width: int
    theta: float
    epsilon: float
    positions: int

    @classmethod
    def of(cls, config: Any, width: int, positions: int) -> Self:
        """Those of one layer of the target, where its config names them."""
        heads = int(getattr(config, "num_attention_heads", None) or 1)
        head_width = int(getattr(config, "head_dim", None) or -(-width // heads))
        rope = getattr(config, "rope_parameters", None) or {}
        theta = rope.get("rope_theta", 10000.0) if isinstance(rope, dict) else 10000.0
        return cls(
            width,
            int(getattr(config, "intermediate_size", None) or 4 * width),
            heads,
            int(getattr(config, "num_key_value_heads", None) or heads),
            head_width + head_width % 2,  # positions turn pairs
            float(theta),
            float(getattr(config, "rms_norm_eps", None) or 1e-5),
            positions,
        )

    @classmethod
    def read(cls, facts: object) -> Self:
        """What `facts` says. Raises InputError for what are no such sizes."""
        try:
            shape = cls(**facts)
            shape = replace(shape, theta=float(shape.theta), epsilon=float(shape.epsilon))
            whole = (shape.width, shape.middle, shape.heads, shape.groups, shape.head_width, shape.positions)
            if all(type(size) is int and 0 < size for size in whole) and max(whole[:-1]) <= _MOST:
                even = shape.heads % shape.groups == 0 and shape.head_width % 2 == 0
                if even and all(math.isfinite(one) and one > 0 for one in (shape.theta, shape.epsilon)):
                    return shape
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError("This feature head does not say what its sizes are; train it anew.") from error
        raise InputError("The sizes that this feature head names cannot be; train it anew.")

    @property
    def facts(self) -> dict[str, Any]:
        return asdict(self)

    def module(self) -> nn.Module:
        """The layer and its final norm as transformers' own, with random weights."""
        return LlamaForCausalLM(self._config()).eval()

    def filled(self, weights: Mapping[str, Tensor]) -> nn.Module:
        """The same with these weights, and none drawn at random."""
        with torch.device("meta"):
            module = self.module()
        first = next(iter(weights.values()))
        unused = {name: first.new_zeros(1, self.width) for name in ("model.embed_tokens.weight", "lm_head.weight")}
        rotary = module.model.rotary_emb
        module.model.rotary_emb = type(rotary)(module.config).to(first.device)
        return put(module, {**weights, **unused})

    def shapes(self) -> dict[str, torch.Size]:
        """By name, the shapes of the weights that a file holds."""
        with torch.device("meta"):
            layer = {name: weight.shape for name, weight in own_parameters(self.module()).items()}
        norm = torch.Size((self.width,))
        return {**layer, FUSE: torch.Size((self.width, 2 * self.width)), TOKEN_NORM: norm, FEATURE_NORM: norm}

    def _config(self) -> LlamaConfig:
        return LlamaConfig(
            vocab_size=1,
            hidden_size=self.width,
            intermediate_size=self.middle,
            num_hidden_layers=1,
            num_attention_heads=self.heads,
            num_key_value_heads=self.groups,
            head_dim=self.head_width,
            max_position_embeddings=self.positions,
            rms_norm_eps=self.epsilon,
            rope_parameters={"rope_type": "default", "rope_theta": self.theta},
            bos_token_id=None,
            eos_token_id=None,
        )


class FeaturePass:
    """The head, laid out for its target's device; `ids` (n,) are all that it can say, None for every id."""

    def __init__(
        self, target: LanguageModel, shape: HeadShape, weights: Mapping[str, Tensor], ids: Tensor | None
    ) -> None:
        self._shape = shape
        extra = {name: weights[name] for name in (FUSE, TOKEN_NORM, FEATURE_NORM)}
        module = shape.filled({name: weight for name, weight in weights.items() if name not in extra})
        self._body = NativeExecutor.from_module(module, shape.positions, owned=False)
        self._fuse = make_linear(extra[FUSE])
        self._token_norm, self._feature_norm = extra[TOKEN_NORM], extra[FEATURE_NORM]
        self._embed, self._head = target.executor.embed, target.executor.head_rows(ids)
        # a lone row of bfloat16 is slower on a CPU than two
        self._even = target.device.type == "cpu" and target.dtype is torch.bfloat16

    @property
    def width(self) -> int:
        return self._shape.width

    def new_cache(self, capacity: int) -> KVCache:
        """Room for so many tokens, and for a row that padding adds."""
        return self._body.new_cache(capacity + 1)

    def states(self, features: Tensor, ids: Tensor, start: int, cache: KVCache) -> Tensor:
        """The features (w, width) at the positions of `ids` (w,), which lie behind `start` others in the cache.

        `features` (w, width): those of the positions before each.
        """
        count = len(ids)
        if self._even and count % 2:
            features, ids = functional.pad(features, (0, 0, 0, 1)), functional.pad(ids, (0, 1))
        tokens = rms_norm(self._embed(ids), self._token_norm, self._shape.epsilon)
        features = rms_norm(features, self._feature_norm, self._shape.epsilon)
        rows = self._fuse(torch.cat([features, tokens], -1))
        return self._body.through(rows, torch.full((), start, device=ids.device), cache)[:count]

    def logits(self, states: Tensor) -> Tensor:
        """What follows tokens with these features: (w, width) -> (w, n)."""
        return self._head(states)


def width_of(target: LanguageModel) -> int:
    """How many numbers the target's features have. Raises LoadError where its embedding cannot be told."""
    try:
        return target.executor.embed(torch.zeros(1, dtype=torch.long, device=target.device)).shape[-1]
    except NotImplementedError as error:
        raise LoadError(f"{target.name} does not say which part of it is the embedding; take another draft.") from error
