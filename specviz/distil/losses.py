"""The objective of a draft in training: the target's own distribution at each position, and its first choice.

A distribution comes as the target's most probable tokens; logits over a whole vocabulary are held for a few rows at a
time only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_ROWS = 1024  # rows of logits at a time


class OutputHead:
    """The target's output head over its whole vocabulary, or over `ids` (n,) alone.

    Calling it turns states (rows, width) into float32 logits (rows, n).
    """

    def __init__(self, module: nn.Module, ids: Tensor | None) -> None:
        head = module.get_output_embeddings()
        bias = getattr(head, "bias", None)
        self.weight = head.weight.detach() if ids is None else head.weight.detach()[ids]
        self._bias = bias if bias is None or ids is None else bias.detach()[ids]
        self._cap = getattr(module.config, "final_logit_softcapping", None)
        self._index: Tensor | None = None  # id -> its index among `ids`, -1 for the others
        if ids is not None:
            self._index = torch.full((len(head.weight),), -1, device=ids.device).index_copy(
                0, ids, torch.arange(len(ids), device=ids.device)
            )

    def __call__(self, states: Tensor) -> Tensor:
        logits = functional.linear(states.to(self.weight.dtype), self.weight, self._bias).float()
        return logits if self._cap is None else self._cap * torch.tanh(logits / self._cap)

    def indices(self, ids: Tensor) -> Tensor:
        """The indices of `ids` among the head's outputs, -1 for an id that it lacks."""
        return ids if self._index is None else self._index[ids]


@dataclass(frozen=True, slots=True)
class Score:
    """Sums over `rows` positions: cross-entropy in nats against the target's distribution, and equal first choices.

    `matches` has one sum per depth of a block at which the draft was examined: its first token, its second ...
    """

    cross_entropy: float
    matches: tuple[float, ...]
    rows: int

    def __add__(self, other: Score) -> Score:
        matches = tuple(map(sum, zip(self.matches, other.matches, strict=True))) if self.rows else other.matches
        return Score(self.cross_entropy + other.cross_entropy, matches, self.rows + other.rows)


EMPTY_SCORE = Score(0.0, (), 0)


def back_propagate(
    states: Tensor, head: OutputHead, top_ids: Tensor, top_probs: Tensor, scale: float
) -> tuple[Tensor, float]:
    """(gradient of `scale` times the summed loss with respect to the states, that sum).

    The loss is the soft cross-entropy of the head's logits. `states` (m, width); `top_ids`, `top_probs` (m, 32).
    """
    states = states.detach().requires_grad_()
    total = 0.0
    for part, ids, probs in zip(states.split(_ROWS), top_ids.split(_ROWS), top_probs.split(_ROWS), strict=True):
        loss = soft_cross_entropy(head(part), head.indices(ids), probs)
        (loss * scale).backward()
        total += float(loss.detach())
    return states.grad, total


def soft_cross_entropy(logits: Tensor, indices: Tensor, probs: Tensor) -> Tensor:
    """-sum p log q over the target's most probable tokens, summed over rows; tokens the draft lacks are left out.

    `logits` (m, n); `indices` (m, 32) into the n, -1 for a token that the draft lacks; `probs` (m, 32).
    """
    known = probs * (indices >= 0)
    chosen = logits.gather(-1, indices.clamp_min(0))
    return (known * (logits.logsumexp(-1, keepdim=True) - chosen)).sum()


@torch.no_grad()
def score(states: Tensor, head: OutputHead, top_ids: Tensor, top_probs: Tensor) -> Score:
    """Compare what the head says of `states` (m, width) with the target's distribution."""
    total = EMPTY_SCORE
    for part, ids, probs in zip(states.split(_ROWS), top_ids.split(_ROWS), top_probs.split(_ROWS), strict=True):
        logits, indices = head(part), head.indices(ids)
        loss = float(soft_cross_entropy(logits, indices, probs))
        total += Score(loss, (float((logits.argmax(-1) == indices[:, 0]).sum()),), len(part))
    return total
