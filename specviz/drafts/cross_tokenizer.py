"""A draft model whose tokenizer is not the target's; it reads the text so far told again in its own tokens.

At temperature 0 it writes a few tokens of its own, whose text the target's tokenizer splits anew (text re-encoding, as
transformers' universal assisted decoding has it). Sampled, it draws from the tokens that both have (token-level
intersection, Timor et al. 2025), so that q is the very distribution drawn from and the rule stays exact. k counts the
target's tokens either way. The loaded draft is never changed. A pair that shares its tokens drafts as `draft-model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from specviz.core.errors import PairError
from specviz.core.text import decode_ids
from specviz.drafting.drawn_block import DrawnBlock
from specviz.drafting.model_drafter import ModelDrafter, cut_to_room, not_in, too_long
from specviz.drafting.retokenising import REPLACEMENT, Retokenised, continuation
from specviz.drafting.shared_tokens import SharedTokens, shared_tokens, special_ids
from specviz.drafting.strategy import NOTHING, Drafter, Proposal, Run, Seen, Strategy, same_device
from specviz.drafting.vocabulary import common_vocabulary
from specviz.models import LanguageModel

_CONTEXT = 16  # tokens decoded before a drafted text, so that its spaces are right


@dataclass(frozen=True)
class CrossTokenizer(Strategy):
    name: ClassVar[str] = "cross-tokenizer"
    label: ClassVar[str] = "Draft model with another tokenizer"
    help: ClassVar[str] = "A smaller model of any family guesses; its words are told again in the target's tokens."
    takes_model: ClassVar[bool] = True
    any_tokenizer: ClassVar[bool] = True

    draft_model: LanguageModel
    shared: SharedTokens | None = field(default=None, compare=False, repr=False)  # None: the pair shares its tokens

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        strategy = super().make(target, draft_model, options)
        same_device(target, strategy.draft_model)
        if _same_tokens(target, strategy.draft_model):
            return strategy
        return replace(strategy, shared=shared_tokens(target, strategy.draft_model))

    @property
    def model(self) -> LanguageModel:
        return self.draft_model

    @property
    def note(self) -> str | None:
        if self.shared is None:
            return "target and draft share their tokens: drafted as by draft-model"
        return (
            f"the tokenizers differ; {len(self.shared.to_draft)} of the target's {self.shared.size} tokens are shared"
        )

    def start(self, run: Run) -> Drafter:
        if self.shared is None:
            return ModelDrafter(self.draft_model, run, common_vocabulary(run.target, self.draft_model))
        if run.settings.greedy:
            return TextDrafter(self.draft_model, run, self.shared)
        return SharedTokensDrafter(self.draft_model, run, self.shared)


def _same_tokens(target: LanguageModel, draft: LanguageModel) -> bool:
    try:
        common_vocabulary(target, draft)
    except PairError:
        return False
    return True


class _Reader(Drafter):
    """Reads the kept text in the draft's tokens; what is drafted from there is for the two kinds below."""

    def __init__(self, model: LanguageModel, run: Run, shared: SharedTokens) -> None:
        self._model, self._run, self._shared = model, run, shared
        self._story = _story(run.target, model, shared)
        self._context = model.open(min(model.context_length, run.capacity))
        self._context.prepare(2)
        self._read: list[int] = []  # the draft's ids in the context, as far as the host knows them

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        self._story.push(kept_ids)
        ids = self._known()
        if not self._read and len(ids) > 1 and self._has(ids) and self._fits(len(ids)):
            self._context.prefill(ids[:-1])  # the draft's own prefill
            self._read = ids[:-1]

    @torch.inference_mode()
    def propose(self, k: int) -> Proposal:
        ids = self._known()
        if not k or not ids:
            return NOTHING
        if not self._has(ids):
            return Proposal((), note=not_in(self._model))
        if not self._fits(len(ids)):
            return Proposal((), note=too_long(self._model, self._model.context_length))
        return self._guess(self._catch_up(ids), k, min(k, self._model.context_length - len(ids) + 1))

    def close(self) -> None:
        self._context.close()

    def _known(self) -> list[int]:
        """The kept text in the draft's ids."""
        return self._story.ids

    def _guess(self, logits: Tensor, k: int, passes: int) -> Proposal:
        """At most k of the target's tokens, from the draft's logits (vocabulary,), in so many passes."""
        raise NotImplementedError  # the two kinds below

    def _after(self, token: Tensor) -> Tensor:
        """The draft's logits after a token of its own, ()."""
        return self._context.forward(token[None])[-1]

    def _catch_up(self, ids: list[int]) -> Tensor:
        """Read what the context lacks of `ids`, in one pass; returns the logits after the last."""
        common, limit = 0, min(len(self._read), len(ids) - 1)
        while common < limit and self._read[common] == ids[common]:
            common += 1
        self._context.rewind(self._context.length - common)
        self._read = list(ids)
        return self._context.forward(ids[common:])[-1]

    def _has(self, ids: list[int]) -> bool:
        """Whether the draft has a row for each: a tokenizer may hold tokens that its model was never widened for."""
        return max(ids) < self._model.vocabulary

    def _fits(self, count: int) -> bool:
        """Whether the draft can read so many tokens; its context grows with them, to the model's own length."""
        limit = self._model.context_length
        needed = min(limit, count + self._run.settings.k)
        if needed > self._context.capacity:
            wider = self._model.open(min(limit, 2 * needed))
            wider.prepare(2)
            wider.copy_from(self._context)
            self._context.close()
            self._context = wider
        return count <= limit


class TextDrafter(_Reader):
    """Greedy: the draft writes up to k tokens of its own, and the target's tokenizer splits their text.

    Penalties count the target's tokens, so the draft goes without; at temperature 0 that costs acceptance alone.
    """

    def _guess(self, logits: Tensor, k: int, passes: int) -> Proposal:
        block = DrawnBlock(replace(self._run, counts=None), _Everything(self._model.vocabulary))
        read = block.fill(logits, passes, self._after)
        proposal = block.proposal(None, read + 1)
        own = [int(token) for token in proposal.ids]
        self._read += own[:read]
        ids = self._told(own)[:k]
        note = proposal.note or f"{len(own)} of the draft's tokens make {len(ids)} of the target's"
        return Proposal(ids, passes=read + 1, note=note if len(ids) < k else None)

    def _told(self, own: list[int]) -> list[int]:
        """The draft's tokens, told in the target's; those begin with the character that the kept text has begun."""
        end = next((i for i, token in enumerate(own) if token in self._model.eos_ids), len(own))
        held, target = self._story.held, self._run.target
        ids = continuation(target.tokenizer, self._story.tail, self._text(own[:end]))
        if ids[: len(held)] != held:
            return []
        ids = ids[len(held) :] + list(target.eos_ids[:1] if end < len(own) else ())
        unknown = (i for i, token in enumerate(ids) if token >= target.vocabulary)
        return ids[: next(unknown, len(ids))]

    def _text(self, own: list[int]) -> str:
        """What these tokens add to the text, up to the first bytes that are no whole character."""
        context = self._story.ids[-_CONTEXT:]
        before, whole = (decode_ids(self._model.tokenizer, ids) for ids in (context, context + own))
        text = whole[len(before) :] if whole.startswith(before) else decode_ids(self._model.tokenizer, own)
        return text.split(REPLACEMENT)[0]


class SharedTokensDrafter(_Reader):
    """Sampled: draws from the shared tokens, as the target's penalties and filters have them."""

    def __init__(self, model: LanguageModel, run: Run, shared: SharedTokens) -> None:
        super().__init__(model, run, shared)
        self._ahead = 0  # of the drafted tokens, those that the draft has read

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        self._read += [self._shared.to_draft[token] for token in seen.ids[1 : 1 + self._ahead]]
        self._ahead = 0
        super().observe(kept_ids, seen)

    def propose(self, k: int) -> Proposal:
        if not self._shared.to_draft:
            return Proposal((), note="draft off: the two tokenizers have no token in common")
        return super().propose(k)

    def _known(self) -> list[int]:
        """The kept text, and the bytes of a character that it has begun, where the draft has tokens for them."""
        begun = (self._shared.to_draft.get(token) for token in self._story.held)
        return [*self._story.ids, *(token for token in begun if token is not None)]

    def _guess(self, logits: Tensor, k: int, passes: int) -> Proposal:
        block = DrawnBlock(self._run, self._shared)
        self._ahead = block.fill(logits, passes, lambda token: self._after(self._shared.in_draft(token)))
        proposal = block.proposal(None, self._ahead + 1)
        short = cut_to_room(self._model, passes) if passes < k else None
        return replace(proposal, note=proposal.note or short)


@dataclass(frozen=True, slots=True)
class _Everything:
    """All of the draft's own ids."""

    size: int

    def restrict(self, logits: Tensor) -> Tensor:
        return logits


def _story(target: LanguageModel, draft: LanguageModel, shared: SharedTokens) -> Retokenised:
    specials = {token: shared.to_draft.get(token) for token in special_ids(target)}
    start = list(draft.tokenizer("").input_ids)[:1]
    begins = bool(start) and start[0] == getattr(draft.tokenizer, "bos_token_id", None)
    return Retokenised(target.tokenizer, draft.tokenizer, specials, start if begins else ())
