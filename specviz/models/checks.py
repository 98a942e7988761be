"""What a module must be to be decoded with: a causal language model whose layers keep keys and values, nothing else."""

from __future__ import annotations

import inspect

from torch import nn
from transformers import DynamicCache
from transformers.cache_utils import DummyLayer, DynamicLayer, DynamicSlidingWindowLayer, LinearAttentionCacheLayerMixin

from specviz.core.errors import LoadError

_REWINDABLE_LAYERS = (DynamicLayer, DynamicSlidingWindowLayer, DummyLayer)


def check_architecture(module: nn.Module) -> None:
    """Refuse a module that this project cannot decode with. Raises LoadError with the reason."""
    config = getattr(module, "config", None)
    name = getattr(config, "model_type", type(module).__name__)
    head = getattr(module, "get_output_embeddings", None)
    if config is None or head is None or head() is None:
        raise LoadError(
            f"{type(module).__name__} is not a transformers causal language model; give one that has a language head."
        )
    if getattr(config, "is_encoder_decoder", False):
        raise LoadError(f"'{name}' is an encoder-decoder model; specviz needs a causal (decoder-only) one.")
    _check_state(module, name)
    parameters = inspect.signature(module.forward).parameters
    if not {"cache", "past_key_values"} & set(parameters):
        raise LoadError(f"The forward pass of '{name}' takes no cache of keys and values, so no draft can be dropped.")


def _check_state(module: nn.Module, name: str) -> None:
    """Refuse layers that keep what cannot be taken back: a recurrent state, or an index beside keys and values."""
    layers = _cache_layers(module)
    recurrent = any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
    if recurrent or getattr(module, "_is_stateful", False):
        raise LoadError(
            f"'{name}' keeps a recurrent state that cannot be rewound: rejected drafts would stay in it. "
            "Choose a model whose layers are all attention."
        )
    other = {type(layer).__name__ for layer in layers if type(layer) not in _REWINDABLE_LAYERS}
    if other:
        kinds = ", ".join(sorted(other))
        raise LoadError(
            f"'{name}' keeps more than keys and values ({kinds} in transformers), so rejected drafts cannot be taken "
            "back. Choose a model whose layers keep keys and values alone."
        )


def _cache_layers(module: nn.Module) -> list[object]:
    """The layers of the cache that transformers would make for this module; none where its config is too bare."""
    try:
        return list(DynamicCache(config=module.config).layers)
    except (AttributeError, TypeError, ValueError, KeyError, NotImplementedError):
        return []
