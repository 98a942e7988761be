"""Writers, which write replies to prompts: ours and transformers', all timed from outside in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig
from transformers.generation.streamers import BaseStreamer

from specviz.core.settings import Settings
from specviz.decoding.engine import decode
from specviz.drafting import Strategy
from specviz.models import LanguageModel

_PAD = 0  # only to keep generate from warning that there is none; one prompt needs no padding


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as it was written and timed.

    `ids` (n,); `seconds` from the call to its end; `first_seconds` from the call to the first tokens, of which there
    were `first_tokens`; `passes` of the target. The last three are None from a writer that does not show them.
    """

    ids: tuple[int, ...]
    seconds: float
    first_seconds: float | None = None
    first_tokens: int | None = None
    passes: int | None = None

    @property
    def tokens_per_second(self) -> float | None:
        """Of decoding alone: what came after the first tokens. Every writer reads the prompt before them."""
        if self.first_seconds is None or self.first_tokens is None or len(self.ids) <= self.first_tokens:
            return None
        return (len(self.ids) - self.first_tokens) / (self.seconds - self.first_seconds)

    @property
    def whole_tokens_per_second(self) -> float:
        """Of the whole call, prefill included."""
        return len(self.ids) / self.seconds

    @property
    def tau(self) -> float | None:
        """Tokens per target pass."""
        return None if self.passes is None else len(self.ids) / self.passes


# (prompt ids, number of tokens) -> a reply of exactly that many tokens, past any EOS
Writer = Callable[[Sequence[int], int], Reply]


def lane_writer(target: LanguageModel, strategy: Strategy, k: int) -> Writer:
    """Greedy decoding by this strategy, without telemetry."""

    def write(prompt_ids: Sequence[int], tokens: int) -> Reply:
        settings = Settings(k=k, max_new_tokens=tokens, ignore_eos=True, telemetry=False)
        ids: list[int] = []
        passes = first_tokens = 0
        first_seconds = 0.0
        start = time.perf_counter()
        for round_ in decode(target, strategy, prompt_ids, settings):
            ids.extend(token.id for token in round_.kept)
            passes += 1
            if passes == 1:
                first_seconds, first_tokens = time.perf_counter() - start, len(ids)
        return Reply(tuple(ids), time.perf_counter() - start, first_seconds, first_tokens, passes)

    return write


def without_generation_config(module: nn.Module) -> nn.Module:
    """The module, with a generation_config that sets nothing: the arguments of `generate_writer` decide alone."""
    module.generation_config = GenerationConfig(pad_token_id=_PAD)
    return module


def generate_writer(module: nn.Module, *, assistant: nn.Module | None = None, k: int = 0, lookup: int = 0) -> Writer:
    """transformers' greedy `generate`: plain, assisted by `assistant` with k tokens, or by prompt lookup.

    `module` and `assistant` come from `without_generation_config`.
    """
    extra: dict[str, Any] = {}
    if assistant is not None:
        # transformers reads an assistant's k from the assistant's own generation_config
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
    """When tokens arrived: the prompt once, then what each target pass gave."""

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
