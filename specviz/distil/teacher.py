"""Teacher: a target's transformers module as it was loaded, its tokenizer, and what its checkpoint says.

A LanguageModel lays weights out anew for one stream of passes; writing text in batches and training want the module
itself. It is in evaluation mode, needs no gradients, and nobody changes its weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import GenerationConfig
from transformers.utils import logging

from specviz.catalogue.catalog import load_catalog
from specviz.core.errors import InputError
from specviz.distil.batching import spare_copies
from specviz.models.checks import check_architecture
from specviz.models.device import DTYPES, pick_device, use_available_cores
from specviz.sources import Checkpoint, Progress, load_checkpoint, normalise, resolve, split_form


@dataclass(frozen=True, slots=True)
class Teacher:
    """`source` is normalised; `eos_ids` are the tokenizer's and the checkpoint's; `context_length` in tokens."""

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
        """Weights as loaded, shared ones once."""
        return sum(weight.numel() for weight in self.module.parameters())


def load_teacher(source: str, device: str = "auto", dtype: str = "auto", progress: Progress | None = None) -> Teacher:
    """Load the weights that `source` names, as `specviz.load` would. Raises LoadError or InputError in words.

    `dtype` auto is bfloat16, except on a processor that has no instructions for it.
    """
    if split_form(source)[1] is not None:
        raise InputError(f"A draft is made from the weights as they are; leave out the '#' and what follows: {source}.")
    if dtype not in ("auto", *DTYPES):
        raise InputError(f"dtype '{dtype}' is not known; use auto, {', '.join(DTYPES)}.")
    source, place = normalise(source), pick_device(device)
    logging.set_verbosity_error()
    use_available_cores()
    known = load_catalog().model_of(source)
    checkpoint = resolve(source, progress, fallback=known.fallback if known else None)
    module, tokenizer = load_checkpoint(checkpoint, _dtype(place) if dtype == "auto" else DTYPES[dtype])
    check_architecture(module)
    module.generation_config = GenerationConfig()  # a checkpoint's own never changes a run
    own = () if tokenizer.eos_token_id is None else (int(tokenizer.eos_token_id),)
    module = module.requires_grad_(False).to(place)
    spare_copies(module)
    return Teacher(
        source,
        module,
        tokenizer,
        checkpoint,
        tuple(dict.fromkeys((*own, *checkpoint.eos_token_ids))),
        _context_length(module.config),
    )


def _dtype(device: torch.device) -> torch.dtype:
    if device.type != "cpu":
        return torch.float16 if device.type == "mps" else torch.bfloat16
    quick = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if quick else torch.float32


def _context_length(config: Any) -> int:
    length = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if not length:
        raise InputError("The model's configuration does not say how many positions it has (max_position_embeddings).")
    return int(length)
