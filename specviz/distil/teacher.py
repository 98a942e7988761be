"""Teacher: a target's transformers module as it was loaded, its tokenizer, and what its checkpoint says.

The target is both the writer of the text and the teacher of the drafts. A LanguageModel lays its weights out for one
stream of passes; batched generation and training need the module itself. The module is in evaluation mode, computes no
gradients for its weights, and nobody changes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationConfig
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils import logging

from specviz.catalogue.model_loader import catalogue_loader
from specviz.core.errors import InputError
from specviz.drafting.target_facts import fingerprint
from specviz.models.checks import check_architecture
from specviz.models.device import DTYPES, pick_device, use_available_cores
from specviz.sources import Checkpoint, Progress, load_checkpoint, normalise, split_form

_GROUPED_ATTENTION = "specviz_grouped"


@dataclass(frozen=True, slots=True)
class Teacher:
    """`source` is normalised; `eos_ids` are the tokenizer's and the checkpoint's; `context_length` is in tokens."""

    source: str
    module: nn.Module
    tokenizer: Any
    checkpoint: Checkpoint
    eos_ids: tuple[int, ...]
    context_length: int

    @property
    def name(self) -> str:
        return self.checkpoint.name

    @property
    def vocabulary(self) -> int:
        """Rows of the output head."""
        return int(self.module.get_output_embeddings().weight.shape[0])

    @property
    def parameters(self) -> int:
        """Weights as loaded, shared ones counted once."""
        return sum(weight.numel() for weight in self.module.parameters())

    @property
    def facts(self) -> dict[str, Any]:
        """What the file of a draft says of its target; equal to `target_facts` of the loaded model."""
        return {
            "name": self.name,
            "parameters": self.parameters,
            "layers": int(self.module.config.num_hidden_layers),
            "width": int(self.module.config.hidden_size),
            "fingerprint": fingerprint(self.tokenizer, self.vocabulary),
        }


def load_teacher(source: str, device: str = "auto", dtype: str = "auto", progress: Progress | None = None) -> Teacher:
    """Load the weights that `source` names, as `specviz.load` would. Raises LoadError or InputError.

    `dtype` auto is bfloat16, or float32 on a processor without bfloat16 instructions, or float16 on mps.
    """
    if split_form(source)[1] is not None:
        raise InputError(f"A draft is made from the weights as they are; leave out the '#' and what follows: {source}.")
    if dtype not in ("auto", *DTYPES):
        raise InputError(f"dtype '{dtype}' is not known; use auto, {', '.join(DTYPES)}.")
    source, place = normalise(source), pick_device(device)
    logging.set_verbosity_error()
    use_available_cores()
    checkpoint = catalogue_loader().resolve(source, progress)
    module, tokenizer = load_checkpoint(checkpoint, _auto_dtype(place) if dtype == "auto" else DTYPES[dtype])
    check_architecture(module)
    module.generation_config = GenerationConfig()  # a checkpoint's own never changes a run
    own = () if tokenizer.eos_token_id is None else (int(tokenizer.eos_token_id),)
    module = module.requires_grad_(False).to(place)
    _avoid_copies(module)
    return Teacher(
        source,
        module,
        tokenizer,
        checkpoint,
        tuple(dict.fromkeys((*own, *checkpoint.eos_token_ids))),
        _context_length(module.config),
    )


def _auto_dtype(device: torch.device) -> torch.dtype:
    if device.type != "cpu":
        return torch.float16 if device.type == "mps" else torch.bfloat16
    fast = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if fast else torch.float32


def _context_length(config: Any) -> int:
    length = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if not length:
        raise InputError(
            "The model's config.json does not give its context length; add max_position_embeddings, or choose another "
            "target."
        )
    return int(length)


def _avoid_copies(module: nn.Module) -> None:
    """Spare two copies in transformers' batched generation on a CPU; the numbers stay the same.

    Under a mask, which left padding needs, transformers copies every key and value once per query head that shares it:
    850 ms per step for the attention of SmolLM2-135M over 96 rows of 320 tokens, 58 ms without. And the head's product
    with the last position of each row, a strided view, copies the head once per row: 8 s and 4.5 GB for 80 rows.
    """
    if module.device.type != "cpu":
        return
    module.get_output_embeddings().register_forward_pre_hook(_contiguous)
    if module.config._attn_implementation == "sdpa":
        module.set_attn_implementation(_GROUPED_ATTENTION)


def _contiguous(_head: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(each.contiguous() for each in inputs)


def _grouped_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **rest: Any,
) -> tuple[Tensor, None]:
    """query (b, heads, n, d), key and value (b, groups, length, d) -> (b, n, heads, d)."""
    if attention_mask is None:
        return sdpa_attention_forward(module, query, key, value, None, dropout=dropout, scaling=scaling, **rest)
    attended = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=attention_mask, dropout_p=dropout, scale=scaling, enable_gqa=True
    )
    return attended.transpose(1, 2).contiguous(), None


ALL_ATTENTION_FUNCTIONS.register(_GROUPED_ATTENTION, _grouped_attention)
ALL_MASK_ATTENTION_FUNCTIONS.register(_GROUPED_ATTENTION, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
