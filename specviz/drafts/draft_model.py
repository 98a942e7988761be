"""A small model drafts: k passes of its own for k tokens, drawn from the same filtered distribution as the target's.

After a full acceptance, or after rounds that another strategy drafted, the first pass of the next round reads the
tokens that the draft has not seen yet, so the count stays exactly k. Nothing is read back to the host while drafting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from specviz.drafts.strategy import NOTHING, Drafter, Proposal, Run, Seen, Strategy, same_device
from specviz.drafts.vocabulary import CommonVocabulary, common_vocabulary
from specviz.models import LanguageModel
from specviz.sampling import distribution, draw, penalise


@dataclass(frozen=True)
class DraftModel(Strategy):
    name: ClassVar[str] = "draft-model"
    label: ClassVar[str] = "Draft model"
    help: ClassVar[str] = "A smaller model of the target's family guesses token by token."
    takes_model: ClassVar[bool] = True

    draft_model: LanguageModel
    pair_note: str | None = None

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        strategy = super().make(target, draft_model, options)
        same_device(target, strategy.draft_model)
        return replace(strategy, pair_note=_pair_note(target, strategy.draft_model))

    @property
    def note(self) -> str | None:
        return self.pair_note

    @property
    def model(self) -> LanguageModel:
        return self.draft_model

    def start(self, run: Run) -> Drafter:
        return ModelDrafter(self.draft_model, run, common_vocabulary(run.target, self.draft_model))


def _pair_note(target: LanguageModel, draft: LanguageModel) -> str | None:
    """Raises PairError where the two do not share their tokens."""
    note = common_vocabulary(target, draft).note
    same = "target and draft are the same weights" if draft is target else None
    return "; ".join(filter(None, (same, note))) or None


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
            self._off = f"draft off: the text holds a token that {self._model.name} does not have"
        elif not self._context.length:
            self._read_prompt()

    def propose(self, k: int) -> Proposal:
        room = self._limit - self._context.length - len(self._unread) + 1
        if room <= 0:
            self._off = self._off or self._full()
        if self._off is not None:
            return Proposal((), note=self._off)
        if k <= room:
            return self._draft(k) if k else NOTHING
        return replace(self._draft(room), note=f"k cut to {room}: the room left in the context of {self._model.name}")

    def close(self) -> None:
        self._context.close()

    def _read_prompt(self) -> None:
        """The draft's own prefill: all but the last token, as far as it fits."""
        if len(self._unread) > self._limit:
            self._off = self._full()
            return
        self._context.prefill(self._unread[:-1])
        self._unread = self._unread[-1:]

    def _full(self) -> str:
        return f"draft off: {self._model.name} reads at most {self._limit} tokens, and the text is longer"

    @torch.inference_mode()
    def _draft(self, k: int) -> Proposal:
        settings = self._run.settings
        logits = self._context.forward(self._unread)
        previous = self._common.restrict(logits[-2]).argmax() if self._all_kept else None
        self._unread = []
        block = _Block(self._run, self._common)
        token = block.next(logits[-1])
        for _ in range(k - 1):
            token = block.next(self._context.forward(token[None])[-1])
        self._drafted, self._wrote = k - 1, k
        return block.proposal(self._run.target.vocabulary, settings.telemetry, previous, k)


class _Block:
    """The tokens of one proposal as they are drawn, all on the device."""

    def __init__(self, run: Run, common: CommonVocabulary) -> None:
        self._settings, self._common, self._draws = run.settings, common, run.draws
        self._ids: list[Tensor] = []
        self._probs: list[Tensor] = []
        self._logits: list[Tensor] = []
        counts = run.counts
        self._seen = None if counts is None else counts.seen[: common.size].clone()
        self._written = None if counts is None else counts.written[: common.size].clone()

    def next(self, logits: Tensor) -> Tensor:
        """Draw one token from the draft's logits (draft vocabulary,): an id ()."""
        logits = self._common.restrict(logits).float()
        self._logits.append(logits)
        token = self._draw(self._penalised(logits))
        self._ids.append(token)
        if self._seen is not None:
            one = torch.ones(1, device=token.device)
            self._seen.index_add_(0, token[None], one)  # indexing with a token would make the host wait for it
            self._written.index_add_(0, token[None], one)
        return token

    def proposal(self, vocabulary: int, telemetry: bool, previous: Tensor | None, passes: int) -> Proposal:
        missing = vocabulary - self._common.size
        probs = functional.pad(torch.stack(self._probs), (0, missing)) if self._probs else None
        logits = torch.stack(self._logits) if telemetry else None
        return Proposal(torch.stack(self._ids), probs, previous_choice=previous, logits=logits, passes=passes)

    def _draw(self, logits: Tensor) -> Tensor:
        if self._settings.greedy:
            return logits.argmax(-1)
        probs = distribution(logits, self._settings)
        self._probs.append(probs)
        return draw(probs[None], self._draws(1)).squeeze(0)

    def _penalised(self, logits: Tensor) -> Tensor:
        if self._seen is None:
            return logits
        nothing = torch.empty(0, dtype=torch.long, device=logits.device)
        return penalise(logits[None], self._settings, self._seen, self._written, nothing).squeeze(0)
