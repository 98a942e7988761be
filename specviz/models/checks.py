"""What a model must be able to do: read a block of tokens, take some back, and say the same again."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from specviz.core.errors import LoadError

if TYPE_CHECKING:
    from specviz.models.language_model import LanguageModel

_REWINDABLE = {"full_attention", "sliding_attention", "attention"}
_PROBE = 6
# Relative distance of logits computed whole and in pieces; a wrong mask or position is far beyond it.
_TOLERANCE = {torch.float32: 1e-2, torch.bfloat16: 0.15, torch.float16: 0.1}


def check_architecture(module: nn.Module) -> None:
    """Refuse, in words, a module that this project cannot decode with: raises LoadError."""
    config = getattr(module, "config", None)
    name = getattr(config, "model_type", type(module).__name__)
    if config is None or not hasattr(module, "get_output_embeddings") or module.get_output_embeddings() is None:
        raise LoadError(f"{type(module).__name__} is not a transformers causal language model.")
    if getattr(config, "is_encoder_decoder", False):
        raise LoadError(f"'{name}' is an encoder-decoder model; specviz needs a causal (decoder-only) one.")
    kinds = set(getattr(config, "layer_types", None) or ())
    if getattr(module, "_is_stateful", False) or kinds - _REWINDABLE:
        raise LoadError(
            f"'{name}' keeps a recurrent state that cannot be rewound: rejected drafts would stay in it. "
            "Choose a model whose layers are all attention."
        )
    parameters = inspect.signature(module.forward).parameters
    missing = {"input_ids", "attention_mask", "position_ids"} - set(parameters)
    if missing or not {"cache", "past_key_values"} & set(parameters):
        raise LoadError(
            f"'{name}' does not take positions, a mask and a cache, so its rejected drafts cannot be dropped."
        )


@torch.inference_mode()
def probe_logits(module: nn.Module, context_length: int) -> Tensor:
    """What transformers' own forward says of a few tokens read at once: (tokens, vocabulary)."""
    count = min(_PROBE, context_length)
    ids = torch.arange(count, device=module.device) % module.get_output_embeddings().weight.shape[0]
    return module(input_ids=ids[None], use_cache=False, return_dict=True).logits[0].float()


@torch.inference_mode()
def check_rewind(model: LanguageModel, expected: Tensor | None) -> None:
    """Read the probe in pieces with a detour taken back: the logits must agree. Raises LoadError.

    `expected`: what the module said itself; None where the weights are another model's (int4), which must then
    agree with their own reading of the probe at once.
    """
    ids = torch.arange(min(_PROBE, model.context_length), device=model.device) % model.vocabulary
    try:
        if expected is None:
            with model.open(len(ids)) as context:
                expected = context.forward(ids).float()
        found = _in_pieces(model, ids)
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        raise LoadError(_refusal(model, f"its forward pass fails over a rewindable cache ({error})")) from error
    if not bool(expected.isfinite().all()):
        raise LoadError(
            f"{model.name} gives logits that are no numbers; its weights are damaged, or the dtype is too small."
        )
    distance = (found - expected).norm() / expected.norm().clamp_min(1e-6)
    if not bool(distance < _TOLERANCE.get(model.dtype, 0.1)):
        raise LoadError(_refusal(model, f"its logits change by {float(distance):.0%} when it reads in pieces"))


def _in_pieces(model: LanguageModel, ids: Tensor) -> Tensor:
    with model.open(len(ids)) as context:
        first = context.forward(ids[:2])
        context.forward(ids[2:].flip(0))
        context.keep(0)
        rest = context.forward(ids[2:])
        return torch.cat([first, rest]).float()


def _refusal(model: LanguageModel, why: str) -> str:
    return f"{model.name} cannot be used: {why}. Its kind of attention cannot take rejected drafts back here."
