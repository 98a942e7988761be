"""The other side of a comparison: transformers' own `generate` as a Writer, greedy, with or without assistance.

The checkpoint's generation_config is set aside, so that nothing but the arguments here decides; EOS does not end a
reply. An assistant's k is read from the assistant's own generation_config, and its schedule held constant.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig
from transformers.generation.streamers import BaseStreamer

from specviz.experiments.reply import Reply, Writer

_PAD = 0  # only to keep generate from warning that there is none; one prompt needs no padding


def make_bare(module: nn.Module) -> nn.Module:
    """The module, whose generation_config no longer says anything."""
    module.generation_config = GenerationConfig(pad_token_id=_PAD)
    return module


def generate_writer(module: nn.Module, *, assistant: nn.Module | None = None, k: int = 0, lookup: int = 0) -> Writer:
    """Greedy `generate` of a bare module: plain, assisted by `assistant` with k tokens, or by prompt lookup."""
    extra: dict[str, Any] = {}
    if assistant is not None:
        assistant.generation_config.num_assistant_tokens = k
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
        assistant.generation_config.assistant_confidence_threshold = 0.0  # drafts never end early
        extra["assistant_model"] = assistant
    settings = {"prompt_lookup_num_tokens": lookup} if lookup else {}

    def write(prompt_ids: Sequence[int], tokens: int) -> Reply:
        ids = torch.tensor([list(prompt_ids)], device=module.device)
        config = GenerationConfig(
            max_new_tokens=tokens, do_sample=False, num_beams=1, use_cache=True, pad_token_id=_PAD, **settings
        )
        arrivals = _Arrivals()
        start = time.perf_counter()
        output = module.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config,
                                 streamer=arrivals, **extra)  # fmt: skip
        written = tuple(output[0, ids.shape[1] :].tolist())
        seconds = time.perf_counter() - start
        return Reply(written, seconds, arrivals.first - start, arrivals.first_tokens, arrivals.passes)

    return write


class _Arrivals(BaseStreamer):
    """When tokens came: once the prompt, then whatever each pass of the target gave."""

    def __init__(self) -> None:
        self.passes = -1
        self.first = 0.0
        self.first_tokens = 0

    def put(self, value: Tensor) -> None:
        self.passes += 1
        if self.passes == 1:
            self.first, self.first_tokens = time.perf_counter(), value.numel()

    def end(self) -> None:
        """Nothing to finish."""
