"""What a causal LM's config and module say of its text part: depth, positions, kinds of attention and their windows.

A multimodal config keeps these in its `text_config`, and each architecture names them in its own way.
"""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from specviz.core.errors import LoadError

# How configs and attention modules name the reach of sliding, chunked, local and sparse attention.
_WINDOW_NAMES = re.compile(
    r"sliding_window\w*|window_size|\w*_window_size|\w*chunk_size|\w*local\w*|block_size|index_topk"
)


def text_config(config: Any) -> Any:
    """The config of the part that reads and writes text: the config itself, or one inside a multimodal config."""
    find = getattr(config, "get_text_config", None)
    return config if find is None else find(decoder=True)


def depth(config: Any) -> int:
    """The number of decoder layers."""
    return int(text_config(config).num_hidden_layers)


def context_length(module: nn.Module) -> int:
    """Positions that the model was made for. Raises LoadError where its config does not say.

    Rotary scalings that change with the length are not stretched.
    """
    config = text_config(module.config)
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "max_target_positions")
    length = next((found for name in names if (found := getattr(config, name, None))), None)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if isinstance(rope, dict) and rope.get("rope_type") in ("dynamic", "longrope"):
        length = rope.get("original_max_position_embeddings") or length
    if not length:
        raise LoadError(
            "The model's config does not say how many positions it has; set max_position_embeddings in its config."
        )
    return int(length)


def attention_kinds(config: Any) -> tuple[str, ...]:
    """The kind of attention of each layer, as `layer_types` names it; empty where all layers are alike."""
    return tuple(getattr(text_config(config), "layer_types", None) or ())


def sliding_window(config: Any) -> int | None:
    """The sliding window of the layers that have one, with the token itself; None where no layer has one."""
    config = text_config(config)
    kinds = getattr(config, "layer_types", None)
    if kinds is not None and "sliding_attention" not in kinds:
        return None
    if kinds is None and not getattr(config, "use_sliding_window", True):
        return None
    return getattr(config, "sliding_window", None)


def chunk_size(config: Any) -> int | None:
    """The size of the chunks within which chunked attention sees; None where no layer has them."""
    config = text_config(config)
    return getattr(config, "attention_chunk_size", None) if "chunked_attention" in attention_kinds(config) else None


def widest_window(module: nn.Module, context_length: int) -> int:
    """The largest window, chunk or local block below the context length that config or modules name; 0 for none."""
    owners = (vars(text_config(module.config)), *(vars(part) for part in module.modules()))
    found = (
        value
        for owner in owners
        for name, value in owner.items()
        if type(value) is int and 0 < value < context_length and _WINDOW_NAMES.fullmatch(name)
    )
    return max(found, default=0)
