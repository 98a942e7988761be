"""ModelDrafter: a small model drafts, k passes of its own for k tokens, from the target's filtered distribution.

After a full acceptance, or after rounds that another strategy drafted, the first pass of the next round also reads the
tokens that the draft has not seen yet, so the count stays exactly k. A block that stops where the draft is unsure takes
one pass more than it has tokens. On an accelerator, nothing is read back to the host while drafting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from specviz.drafting.drawn_block import DrawnBlock
from specviz.drafting.strategy import NOTHING, Drafter, Proposal, Run, Seen
from specviz.drafting.vocabulary import CommonVocabulary
from specviz.models import LanguageModel


def too_long(model: LanguageModel, limit: int) -> str:
    """Why a draft model drafts nothing any more."""
    return f"draft off: {model.name} reads at most {limit} tokens, and the text is longer"


def not_in(model: LanguageModel) -> str:
    """Why a draft model drafts nothing after a text that it cannot read."""
    return f"draft off: the text holds a token that {model.name} does not have"


def cut_to_room(model: LanguageModel, room: int) -> str:
    """Why a draft model drafts fewer tokens than it was asked for."""
    return f"k cut to {room}: the room left in the context of {model.name}"


class ModelDrafter(Drafter):
    """Drafts with a model of its own; also the engine of strategies that make such a model."""

    def __init__(self, model: LanguageModel, run: Run, common: CommonVocabulary) -> None:
        self._model, self._run, self._common = model, run, common
        self._limit = min(model.context_length, run.capacity)
        self._context = model.open(self._limit)
        self._context.prepare(2)  # one token, or two after a full acceptance
        self._unread: list[int] = []  # kept tokens that the draft has not seen
        self._drafted = 0  # of the drafted tokens, those it has read
        self._off: str | None = None  # why nothing is drafted any more
        self._wrote = 0  # how many tokens the last block had, 0 where another strategy drafted it
        self._all_kept = False  # whether the target kept all of it and added a bonus
        self._beyond: Tensor | None = None  # the choice at the position that the last block stopped before

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        """Keep the part of the last block that was kept; the rest of `kept_ids` is read in the next first pass."""
        drafted = seen.ids[1 : 1 + self._drafted] if self._drafted else ()
        agreed = 0
        # the last kept token is the target's own, even where it equals the draft that it replaced
        while agreed < min(len(drafted), len(kept_ids) - 1) and drafted[agreed] == kept_ids[agreed]:
            agreed += 1
        self._all_kept = 0 < self._wrote < len(kept_ids)
        self._wrote = 0
        self._context.rewind(self._drafted - agreed)
        self._drafted = 0
        self._unread.extend(kept_ids[agreed:])
        if any(token >= self._model.vocabulary for token in self._unread):
            self._off = not_in(self._model)
        elif not self._context.length:
            self._read_prompt()

    def propose(self, k: int) -> Proposal:
        room = self._limit - self._context.length - len(self._unread) + 1
        if room <= 0:
            self._off = self._off or too_long(self._model, self._limit)
        if self._off is not None:
            return Proposal((), note=self._off)
        if k <= room:
            return self._draft(k) if k else NOTHING
        block = self._draft(room)
        return replace(block, note=block.note or cut_to_room(self._model, room))

    def close(self) -> None:
        self._context.close()

    def _read_prompt(self) -> None:
        """The draft's own prefill: all but the last token, as far as it fits."""
        if len(self._unread) > self._limit:
            self._off = too_long(self._model, self._limit)
            return
        self._context.prefill(self._unread[:-1])
        self._unread = self._unread[-1:]

    @torch.inference_mode()
    def _draft(self, k: int) -> Proposal:
        logits = self._context.forward(self._unread)
        previous = self._previous(logits)
        self._unread = []
        block = DrawnBlock(self._run, self._common)
        read = block.fill(logits[-1], k, lambda token: self._context.forward(token[None])[-1])
        proposal = block.proposal(previous, read + 1)
        self._drafted, self._wrote = read, len(proposal.ids)
        self._beyond = block.choice_after(self._wrote)
        return proposal

    def _previous(self, logits: Tensor) -> Tensor | None:
        """The draft's choice at the bonus position of the round before, after a full acceptance."""
        if not self._all_kept:
            return None
        return self._common.restrict(logits[-2]).argmax() if self._beyond is None else self._beyond
