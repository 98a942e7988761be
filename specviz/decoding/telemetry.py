"""Explain a round: probabilities, alternatives, overlap, margin and text.

Computed off the clock from what the round has computed already; telemetry never changes a token.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from specviz.core.text import Detokenizer, Pieces
from specviz.drafting import Proposal
from specviz.sampling.sampler import Decision
from specviz.traces import Alternative, DraftToken, Kind, TargetToken, Token, Verdict

TOP = 5


@dataclass(frozen=True, slots=True)
class Block:
    """A decided round of n drafts.

    `path` holds the indices of the kept `ids` in order; `target` is the id that follows, None where a draft ended the
    run. `logits` (n + 1, vocabulary) are the target's own after the context and after each draft, `p` the distributions
    used, None when greedy.

    A draft is tested if the rule reached its parent: on the path it is accepted, elsewhere rejected. A draft after a
    rejected token, or after the token that ended the run, is untested.
    """

    ids: tuple[int, ...]
    path: tuple[int, ...]
    target: int | None
    proposal: Proposal
    decision: Decision
    logits: Tensor
    p: Tensor | None

    @property
    def kept(self) -> tuple[int, ...]:
        kept = tuple(self.ids[index] for index in self.path)
        return kept if self.target is None else (*kept, self.target)

    @property
    def parents(self) -> Sequence[int]:
        """The draft that each draft follows, -1 for the context."""
        parents = self.proposal.parents
        return range(-1, len(self.ids) - 1) if parents is None else parents

    @property
    def accepted(self) -> int:
        return len(self.path)

    @property
    def tested(self) -> int:
        """Positions that the rule decided: those accepted and the one corrected. In a tree a position is a depth."""
        return self.accepted + (self.target is not None and self.kind is Kind.CORRECTION)

    @property
    def last(self) -> int:
        """The deepest accepted draft, -1 for the context."""
        return self.path[-1] if self.path else -1

    @property
    def reached(self) -> tuple[int, ...]:
        """The context (-1) and the drafts whose children were tested, in order."""
        reached = (-1, *self.path)
        return reached if self.target is not None else reached[:-1]

    def verdict(self, index: int) -> Verdict:
        if index in self.path:
            return Verdict.ACCEPTED
        return Verdict.REJECTED if self.parents[index] in self.reached else Verdict.UNTESTED

    def passed_over(self, index: int) -> bool:
        """Whether this draft was not tested because an earlier sibling had been accepted."""
        return any(self.parents[one] == self.parents[index] and one < index for one in self.path)

    @property
    def kind(self) -> Kind:
        """A bonus follows an accepted draft without children; a correction replaces children that were all rejected."""
        if not self.ids:
            return Kind.STANDARD
        return Kind.CORRECTION if self.last in self.parents else Kind.BONUS


class Recorder:
    """Turns the blocks of one lane into the tokens of its trace."""

    def __init__(self, tokenizer: Any, silent_ids: Iterable[int], telemetry: bool) -> None:
        self._telemetry = telemetry
        self._pieces = None if tokenizer is None else Pieces(tokenizer)
        self._text = None if tokenizer is None else Detokenizer(tokenizer, silent_ids)

    @property
    def tail(self) -> str | None:
        return None if self._text is None or not self._telemetry else self._text.tail

    @torch.inference_mode()
    def record(self, block: Block) -> tuple[tuple[DraftToken, ...], TargetToken | None]:
        if not self._telemetry:
            return _bare(block)
        facts = _Facts(block, self._alternatives)
        texts = self._texts(block)
        drafts = tuple(
            DraftToken(
                self._token(token, texts[i]), block.verdict(i), _at(block.proposal.parents, i),
                _at(block.proposal.sources, i), **facts.draft(i),
            )
            for i, token in enumerate(block.ids)
        )  # fmt: skip
        if block.target is None:
            return drafts, None
        return drafts, TargetToken(self._token(block.target, texts[-1]), block.kind, **facts.target())

    def _texts(self, block: Block) -> list[str | None]:
        """The text that each draft would add after its ancestors, and that the target's token adds."""
        if self._text is None:
            return [None] * (len(block.ids) + 1)
        if block.proposal.parents is None:
            fork = self._text.fork()
            drafted = [fork.push(token) for token in block.ids]
        else:
            drafted = self._branches(block)
        kept = [self._text.push(token) for token in block.kept]
        return [*drafted, kept[-1]]

    def _branches(self, block: Block) -> list[str]:
        forks = {-1: self._text}
        drafted = []
        for index, (token, parent) in enumerate(zip(block.ids, block.parents, strict=True)):
            forks[index] = forks[parent].fork()
            drafted.append(forks[index].push(token))
        return drafted

    def _token(self, token: int, text: str | None = None) -> Token:
        return Token(token, text, None if self._pieces is None else self._pieces[token])

    def _alternatives(self, probs: Tensor) -> list[tuple[Alternative, ...]]:
        top, index = probs.topk(min(TOP, probs.shape[-1]), dim=-1)
        rows = zip(index.tolist(), top.tolist(), strict=True)
        return [
            tuple((self._token(i), round(v, 4)) for i, v in zip(ids, values, strict=True) if v > 0)
            for ids, values in rows
        ]


class _Facts:
    """The numbers of one block, transferred from the device."""

    def __init__(self, block: Block, alternatives: Any) -> None:
        self._block = block
        decision, proposal = block.decision, block.proposal
        rows = [node + 1 for node in block.reached]
        self._target_top = dict(zip(rows, alternatives(block.logits[rows].softmax(-1)), strict=True))
        self._draft_top = None if proposal.logits is None else alternatives(proposal.logits.softmax(-1))
        self._q = decision.draft_probs.tolist()
        self._p = decision.target_probs.tolist()
        self._u = None if decision.draws is None else decision.draws.tolist()
        self._overlap = _overlaps(block, self._p)
        corrected = block.kind is Kind.CORRECTION and decision.residual is not None
        self._residual_top = alternatives(decision.residual[None])[0] if corrected else None

    def draft(self, index: int) -> dict[str, Any]:
        block = self._block
        tested = block.verdict(index) is not Verdict.UNTESTED
        drawn = tested and self._u is not None and not block.passed_over(index)
        return {
            "draft_prob": self._q[index],
            "target_prob": self._p[index] if tested else None,
            "draw": self._u[index] if drawn else None,
            "overlap": self._overlap[index] if tested else None,
            "draft_top": _at(self._draft_top, index),
            "target_top": self._target_top[block.parents[index] + 1] if tested else None,
        }

    def target(self) -> dict[str, Any]:
        block = self._block
        row = block.last + 1
        best = block.logits[row].topk(min(2, block.logits.shape[-1])).values.tolist()
        margin = best[0] - best[-1] if len(best) == 2 else None
        prob = 1.0 if block.p is None else float(block.p[row, block.target])
        drawn = block.decision.draw_prob
        return {
            "target_prob": prob,
            "draw_prob": prob if drawn is None else float(drawn),
            "margin": margin if margin is None or math.isfinite(margin) else None,
            "residual_top": self._residual_top,
            "target_top": self._target_top[row],
        }


def _bare(block: Block) -> tuple[tuple[DraftToken, ...], TargetToken | None]:
    """The tokens of a block with ids and verdicts alone."""
    proposal = block.proposal
    drafts = tuple(
        DraftToken(Token(token), block.verdict(i), _at(proposal.parents, i), _at(proposal.sources, i))
        for i, token in enumerate(block.ids)
    )
    return drafts, None if block.target is None else TargetToken(Token(block.target), block.kind)


def _overlaps(block: Block, target_probs: list[float]) -> list[float]:
    """sum(min(p, q)) at each draft of a chain; in a tree the draft's share of the sum of its siblings and itself."""
    p, q = block.p, block.proposal.probs
    if block.decision.overlaps is not None:
        return block.decision.overlaps.tolist()
    if p is None or q is None:
        return target_probs
    return torch.minimum(p[: len(q)], q).sum(-1).tolist()


def _at(items: Sequence[Any] | None, index: int) -> Any:
    return None if items is None else items[index]
