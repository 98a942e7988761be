"""What a draft in training is judged by: the target's own distribution at each position, its first choice too.

Distributions come as the target's most probable tokens; whole vocabularies are never held for more than a few rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.distil.lessons import Head

_ROWS = 1024  # rows of logits at a time


@dataclass(frozen=True, slots=True)
class Score:
    """Sums over `rows` positions: cross-entropy in nats against the target's distribution, and equal first choices.

    `matches` has a number for each depth of a block at which a draft was examined: its first token, its second ...
    """

    cross_entropy: float
    matches: tuple[float, ...]
    rows: int

    def __add__(self, other: Score) -> Score:
        matches = tuple(map(sum, zip(self.matches, other.matches, strict=True))) if self.rows else other.matches
        return Score(self.cross_entropy + other.cross_entropy, matches, self.rows + other.rows)


NOTHING = Score(0.0, (), 0)


def back_propagate(
    states: Tensor, head: Head, top_ids: Tensor, top_probs: Tensor, share: float
) -> tuple[Tensor, float]:
    """Soft cross-entropy of the head's logits, whole vocabularies never held at once.

    `states` (m, width), detached; `top_ids`, `top_probs` (m, 32). Returns the gradient of `share` times the summed
    loss with respect to the states, and that sum.
    """
    states = states.detach().requires_grad_()
    total = 0.0
    for part, ids, probs in zip(states.split(_ROWS), top_ids.split(_ROWS), top_probs.split(_ROWS), strict=True):
        loss = soft_cross_entropy(head(part), head.places(ids), probs)
        (loss * share).backward()
        total += float(loss.detach())
    return states.grad, total


def soft_cross_entropy(logits: Tensor, places: Tensor, probs: Tensor) -> Tensor:
    """-sum p log q over the target's most probable tokens, summed over rows; those that the draft cannot say are out.

    `logits` (m, n); `places` (m, 32) among the n, -1 for none; `probs` (m, 32).
    """
    known = probs * (places >= 0)
    chosen = logits.gather(-1, places.clamp_min(0))
    return (known * (logits.logsumexp(-1, keepdim=True) - chosen)).sum()


@torch.no_grad()
def score(states: Tensor, head: Head, top_ids: Tensor, top_probs: Tensor) -> Score:
    """`states` (m, width) judged against what the target says."""
    total = NOTHING
    for part, ids, probs in zip(states.split(_ROWS), top_ids.split(_ROWS), top_probs.split(_ROWS), strict=True):
        logits, places = head(part), head.places(ids)
        loss = float(soft_cross_entropy(logits, places, probs))
        total += Score(loss, (float((logits.argmax(-1) == places[:, 0]).sum()),), len(part))
    return total
