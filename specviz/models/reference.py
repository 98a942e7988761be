"""A module's own account of a text, and whether another way of running its weights agrees with it.

The account is taken from the module as it was given, by its own forward and its own attention, without a cache. The
text is longer than every window of the model, so that a wrong window, chunk or mask shows.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig

from specviz.core.errors import LoadError, SpecvizError
from specviz.models.config_facts import depth, text_config, widest_window
from specviz.models.runnable import Runnable

_ROWS = 16  # compared: the last of the text
_STEPS = 2  # of them read one by one
_DETOUR = 5  # wrong tokens, read and taken back
_LEAD = 8  # tokens beyond the widest window
# Parameters times tokens that one reading may cost: a few seconds on a processor, a fraction of one on a GPU.
_WORK = {"cpu": 6e11, "mps": 3e12, "cuda": 1e14}
_UNIT_ROUNDOFF = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
_GROWTH = 16.0
_MARGIN = 4.0
_COARSE = 0.1  # int4 products round more than the dtype does
_GENERATED = 3  # tokens that the module writes itself: one from its prompt, the others over its own cache
_SAME_TEXT = {torch.float32: 2e-3}  # beyond it, 0.2 in half precision, it is not rounding that moves logits


@dataclass(frozen=True, slots=True)
class Reference:
    """The last `len(logits)` rows (rows, vocabulary) of a module's logits over `ids` (n,), and the distance that
    rounding alone explains. `window`: the model's widest, where the text does not reach beyond it."""

    ids: Tensor
    logits: Tensor
    tolerance: float
    window: int = 0

    @property
    def note(self) -> str | None:
        """A sentence about what was not checked, or None."""
        if not self.window:
            return None
        return (
            f"Checked against the model's own forward pass over {len(self.ids)} tokens; "
            f"its attention window of {self.window:,} tokens is longer."
        )

    @torch.inference_mode()
    def fault_of(self, model: Runnable) -> str | None:
        """Why `model` is not what the module is, as the end of a sentence; None where it agrees.

        Read at once, in steps, and after a detour that is taken back, in a cache larger than the text.
        """
        try:
            with model.open(len(self.ids)) as context:
                at_once = self._read(context)
                context.rewind(len(self.logits))
                in_parts = self._read_in_parts(context)
        except _FAILURES as error:
            return f"its forward pass fails over a cache that can be rewound ({_first_line(error)})"
        if (distance := self._distance(at_once)) > self.tolerance:
            return f"over a cache, its logits are {distance:.1%} off those of its own forward pass"
        if (distance := self._distance(in_parts)) > self.tolerance:
            return f"its logits change by {distance:.1%} when it reads a text in parts and takes rejected drafts back"
        return None

    @torch.inference_mode()
    def sees_trees(self, model: Runnable) -> bool:
        """Whether the rows of a tree get the logits of their own branch, and those that follow the branch kept."""
        ids, start = self.ids, len(self.ids) - len(self.logits)
        if len(self.logits) < 6:
            return True
        first, second, third = ids[start : start + 3]
        tree = torch.stack([first, ids[0], second, ids[1], third])
        try:
            with model.open(len(ids)) as context:
                context.prefill(ids[:start])
                branch = context.forward(tree, parents=[-1, -1, 0, 0, 2])[[0, 2, 4]]
                context.keep([0, 2, 4])
                after = context.forward(ids[start + 3 : start + 5])
        except _FAILURES:
            return False
        return self._distance(torch.cat([branch, after])) <= self.tolerance

    def _read(self, context: Any) -> Tensor:
        context.prefill(self.ids[: -len(self.logits)])
        return context.forward(self.ids[-len(self.logits) :])

    def _read_in_parts(self, context: Any) -> Tensor:
        rest = self.ids[-len(self.logits) :]
        steps = [context.forward(token[None]) for token in rest[:_STEPS]]
        rest = rest[_STEPS:]
        context.forward(rest.flip(0)[:_DETOUR])
        context.keep(1)
        context.rewind(1)
        return torch.cat([*steps, context.forward(rest)]) if len(rest) else torch.cat(steps)

    def _distance(self, found: Tensor) -> float:
        return distance(found, self.logits[: len(found)])


def distance(found: Tensor, expected: Tensor) -> float:
    """How far `found` is from `expected` (rows, vocabulary), relative to its size: of the worst row in float32.

    In half precision the median row: a router of experts may tip over at a tie and change one row altogether.
    """
    found, expected = found.float(), expected.float()
    rows = (found - expected).norm(dim=-1) / expected.norm(dim=-1).clamp_min(1e-6)
    return float(rows.nan_to_num(math.inf).max())


@torch.inference_mode()
def read_reference(module: nn.Module, context_length: int, name: str) -> Reference:
    """Let the module write a few tokens by its own `generate`, then read the whole text at once by its own forward.

    `name` is what a refusal calls it. Raises LoadError where the module cannot read a text, gives no numbers, or does
    not say the same in both ways, so that there is nothing to be equal to.
    """
    window = widest_window(module, context_length)
    count = _affordable(module, min(context_length, window + _LEAD + _ROWS))
    ids, rows = _text(module, count), min(_ROWS, max(1, count - 1))
    try:
        with _evaluating(module):
            ids, said = _written(module, ids[: max(1, count - _GENERATED)])
            whole = _last_logits(module, ids, rows)
            earlier = whole[rows - 1 - len(said) : rows - 1]
            if not len(said):
                said = _last_logits(module, ids[: len(ids) - rows // 2], rows - rows // 2)
                earlier = whole[: len(said)]
    except _FAILURES as error:
        reason = f"its own forward pass fails on a text ({_first_line(error)})"
        raise LoadError(f"{name} cannot be used: {reason}.") from error
    if not bool(whole.isfinite().all()):
        raise LoadError(
            f"{name} gives logits that are no numbers: its weights are damaged, or the dtype is too small for them; "
            "try float32 or a fresh copy."
        )
    variation = _variation(module, said, earlier, name)
    short = window if window + _ROWS > len(ids) else 0
    return Reference(ids, whole, max(_MARGIN * variation, _rounding(module)), short)


def _written(module: nn.Module, prompt: Tensor) -> tuple[Tensor, Tensor]:
    """The prompt and what `generate` makes of it (n,), and the logits (new tokens, vocabulary) that it went by.

    None are new where the module has no `generate`, or one that its generation config leads elsewhere.
    """
    settings = {"do_sample": False, "num_beams": 1, "max_new_tokens": _GENERATED, "pad_token_id": 0}
    asked = GenerationConfig(**settings, output_logits=True, return_dict_in_generate=True)
    try:
        made = module.generate(prompt[None], generation_config=asked, attention_mask=torch.ones_like(prompt)[None])
        return made.sequences[0], torch.cat(made.logits).float()
    except _FAILURES:
        return prompt, prompt.new_empty(0)


def _variation(module: nn.Module, said: Tensor, earlier: Tensor, name: str) -> float:
    """How far a module's logits for one text lie apart when it reads on, or over its own cache."""
    limit = _SAME_TEXT.get(module.dtype, 0.2)
    if distance(said[:1], earlier[:1]) > limit:
        advice = "Set is_decoder=True in its config" if _may_be_decoder(module) else "Choose a causal language model"
        raise LoadError(
            f"{name} cannot be used: it reads a text in both directions, so what it says of a token changes with what "
            f"follows. {advice}."
        )
    if (variation := distance(said, earlier)) > limit:
        raise LoadError(
            f"{name} cannot be used: over its own cache its logits are {variation:.0%} off those of its forward pass "
            "over the same text, so a check of several tokens cannot equal one token at a time. Choose another model."
        )
    return variation


def _affordable(module: nn.Module, count: int) -> int:
    """`count` tokens, or as many as a reading of a few seconds takes."""
    parameters = sum(weight.numel() for weight in module.parameters())
    most = int(_WORK.get(module.device.type, _WORK["cpu"]) / max(1, parameters))
    return min(count, max(most, _LEAD + _ROWS))


def _may_be_decoder(module: nn.Module) -> bool:
    return getattr(module.config, "is_decoder", None) is False


@torch.inference_mode()
def read_itself(model: Runnable) -> Reference:
    """What a model whose weights are not the module's (int4) says of the text when it reads it at once."""
    count = min(model.context_length, _LEAD + _ROWS)
    ids = (torch.arange(count, device=model.device) * 7919 + 13) % model.vocabulary
    with model.open(count) as context:
        logits = context.forward(ids).float()
    return Reference(ids, logits[-min(_ROWS, max(1, count - 1)) :], _COARSE)


def _rounding(module: nn.Module) -> float:
    """The relative distance that rounding explains between two orders of the same arithmetic.

    Each layer rounds its results to the dtype, and sums up rows of its width in float32, whose errors grow on their way
    through the softmax. Independent errors add up with the square root of their number (Higham 2002, section 2.8).
    """
    unit = _UNIT_ROUNDOFF.get(module.dtype, 2.0**-8)
    if module.device.type == "cuda" and torch.get_float32_matmul_precision() != "highest":
        unit = max(unit, 2.0**-11)  # TF32
    width = module.get_output_embeddings().weight.shape[-1]
    return 2 * math.sqrt(depth(module.config)) * (unit + _GROWTH * math.sqrt(width) * _UNIT_ROUNDOFF[torch.float32])


def _text(module: nn.Module, count: int) -> Tensor:
    """Ids (count,) all over the vocabulary, without those that a config names as special (a pad, an image)."""
    vocabulary = module.get_output_embeddings().weight.shape[0]
    configs = (module.config, text_config(module.config))
    special = {
        value
        for config in configs
        for name, value in vars(config).items()
        if name.endswith(("token_id", "token_index"))
    }
    usable = [token for token in range(min(vocabulary, 4096)) if token not in special] or [0]
    return torch.tensor([usable[(place * 7919 + 13) % len(usable)] for place in range(count)], device=module.device)


def _last_logits(module: nn.Module, ids: Tensor, rows: int) -> Tensor:
    """The last rows (rows, vocabulary) of one forward pass without a cache, with positions as `generate` gives them."""
    known = inspect.signature(module.forward).parameters
    more: dict[str, Any] = {"logits_to_keep": rows} if "logits_to_keep" in known else {}
    if "position_ids" in known:
        more["position_ids"] = torch.arange(len(ids), device=ids.device)[None]
    logits = module(input_ids=ids[None], use_cache=False, return_dict=True, **more).logits[0]
    return logits[-rows:].float()


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for the time being; afterwards each part is as it was."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


_FAILURES = (
    RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError, AssertionError, NotImplementedError,
    ImportError, SpecvizError,
)  # fmt: skip
