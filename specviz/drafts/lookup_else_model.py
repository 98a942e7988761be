"""Prompt lookup where the text repeats itself, a draft model everywhere else.

A round is drafted by one of the two. What a lookup round kept, the model reads in the first pass of its own next one.
Copied tokens cost nothing and a model's do, so the model may be held to fewer of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from specviz.core.settings import MAX_K
from specviz.drafting.strategy import Drafter, Proposal, Run, Seen, option
from specviz.drafts.draft_model import DraftModel
from specviz.drafts.prompt_lookup import PromptLookup
from specviz.traces import SourceInfo

_LOOKUP = SourceInfo("lookup", "prompt lookup", "what followed the same tokens earlier in this text")
_MODEL = SourceInfo("model", "the draft model")


@dataclass(frozen=True)
class LookupElseModel(DraftModel):
    name: ClassVar[str] = "lookup-else-model"
    label: ClassVar[str] = "Prompt lookup, else a draft model"
    help: ClassVar[str] = "Copies where the text repeats itself; elsewhere a smaller model guesses."
    sources: ClassVar[tuple[SourceInfo, ...]] = (_LOOKUP, _MODEL)
    parts: ClassVar[tuple[str, ...]] = (PromptLookup.name, DraftModel.name)

    max_ngram: int = option(4, 1, 16, "longest run of tokens to match")
    min_ngram: int = option(2, 1, 16, "shortest run of tokens to match")
    model_k: int = option(0, 0, MAX_K, "most tokens that the model guesses in a round; 0: as many as k")

    def start(self, run: Run) -> Drafter:
        lookup = PromptLookup(self.max_ngram, self.min_ngram).start(run)
        return _Either(lookup, super().start(run), self.model_k or MAX_K)


class _Either(Drafter):
    def __init__(self, lookup: Drafter, model: Drafter, model_k: int) -> None:
        self._lookup, self._model, self._model_k = lookup, model, model_k

    def propose(self, k: int) -> Proposal:
        copied = self._lookup.propose(k)
        if len(copied.ids):
            return replace(copied, sources=(_LOOKUP.name,) * len(copied.ids))
        guessed = self._model.propose(min(k, self._model_k))
        return replace(guessed, sources=(_MODEL.name,) * len(guessed.ids))

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        self._lookup.observe(kept_ids, seen)
        self._model.observe(kept_ids, seen)

    def close(self) -> None:
        self._model.close()
