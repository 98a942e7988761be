"""How many tokens a round drafts: all of k, fewer by this run's acceptance so far, or up to where the draft is unsure.

A policy may look at what was fixed before a token is drawn (the text so far, the draft's distribution), never at the
drawn token itself: dropping tokens because they were unlikely bends the law of the output. Every policy belongs to one
run; it knows nothing of models, and of clocks neither, so that the same seed repeats the same rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.core.settings import Settings, k_policy

_MEMORY = 0.9  # the weight of past verdicts after each tested round
_PRIOR = (3.0, 4.0)  # kept and tested drafts with which a run begins


def block_policy(settings: Settings) -> BlockPolicy:
    """What asks for the tokens of each round of one run."""
    name, level = k_policy(settings.k_policy)
    return AdaptivePolicy(settings.k, level) if name == "adaptive" else BlockPolicy(settings.k)


class BlockPolicy:
    """Asks for k tokens in every round."""

    def __init__(self, k: int) -> None:
        self._k = k

    def ask(self) -> tuple[int, str | None]:
        """How many tokens to draft next, and in words why they are fewer than k."""
        return self._k, None

    def learn(self, accepted: int, tested: int) -> None:
        """Take in a round's verdicts: of `tested` drafts `accepted` were kept."""


class AdaptivePolicy(BlockPolicy):
    """Asks for the most tokens, from 1 to k, whose last has at least the chance `level` of being kept.

    The i-th token of a block is kept with chance alpha^i (Leviathan et al. 2023), alpha = accepted / tested over the
    run so far, older rounds weighing less. Where a drafted token costs c target passes, the best level is near c
    divided by the tokens per pass.
    """

    def __init__(self, k: int, level: float) -> None:
        super().__init__(k)
        self._level = level
        self._accepted, self._tested = _PRIOR

    @property
    def alpha(self) -> float:
        return self._accepted / self._tested

    def ask(self) -> tuple[int, str | None]:
        wanted = self._worthwhile()
        if wanted >= self._k:
            return self._k, None
        return wanted, f"k cut to {wanted}: of the drafts tested lately {self.alpha:.0%} were accepted"

    def _worthwhile(self) -> int:
        """The largest i with alpha^i >= level, or 1."""
        if self.alpha <= self._level:
            return 1
        return self._k if self.alpha >= 1 else int(math.log(self._level) / math.log(self.alpha))

    def learn(self, accepted: int, tested: int) -> None:
        if tested:
            self._accepted = _MEMORY * self._accepted + accepted
            self._tested = _MEMORY * self._tested + tested


def stop_rule(settings: Settings) -> StopRule | None:
    """What ends a block before a position where the draft is unsure; None where nothing does."""
    name, level = k_policy(settings.k_policy)
    return StopRule(name, level) if name in ("confidence", "entropy") else None


@dataclass(frozen=True, slots=True)
class StopRule:
    """Whether the draft is too unsure of a position to draft it."""

    name: str
    level: float

    def unsure(self, probs: Tensor) -> Tensor:
        """`probs` (..., vocabulary): the distribution that the token is to be drawn from; returns (...) of bool."""
        if self.name == "confidence":
            return probs.amax(-1) < self.level
        return torch.special.entr(probs).sum(-1) > self.level

    @property
    def note(self) -> str:
        """Why a block has fewer tokens than were asked for."""
        if self.name == "confidence":
            return f"stopped where the draft gives no token a chance of {self.level:g}"
        return f"stopped where the draft's entropy is above {self.level:g} nats"
