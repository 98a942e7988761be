"""Which ids of the target a draft can propose: all of them, those that both models share, or a chosen few.

Two models are compared by their tables of tokens, not by sizes: padded rows, or other special tokens, do not make two
tokenizers different.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from specviz.core.errors import PairError
from specviz.models import LanguageModel


class Restriction(Protocol):
    """Which ids of the target a draft can propose: its logits become logits over the target's first `size` ids."""

    size: int

    def restrict(self, logits: Tensor) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class CommonVocabulary:
    """The ids below `size` that mean the same to both; `excluded` (size,) marks those that do not, None if all do."""

    size: int
    excluded: Tensor | None
    note: str | None = None

    def restrict(self, logits: Tensor) -> Tensor:
        """The draft's logits over the common ids: (..., draft vocabulary) -> (..., size)."""
        common = logits[..., : self.size]
        return common if self.excluded is None else common.masked_fill(self.excluded, -torch.inf)


def common_vocabulary(target: LanguageModel, draft: LanguageModel) -> CommonVocabulary:
    """Compare the token tables. Raises PairError where ordinary tokens differ."""
    size = min(target.vocabulary, draft.vocabulary)
    if target.tokenizer is draft.tokenizer or target.tokenizer is None or draft.tokenizer is None:
        return CommonVocabulary(size, None)
    ours, theirs = (_by_id(model.tokenizer, size) for model in (target, draft))
    special = {*target.tokenizer.all_special_ids, *draft.tokenizer.all_special_ids}
    special |= {*_added(target.tokenizer), *_added(draft.tokenizer)}
    differing = [i for i in ours.keys() | theirs.keys() if ours.get(i) != theirs.get(i)]
    ordinary = [i for i in differing if i not in special and i in ours and i in theirs]
    if ordinary or not set(ours.items()) & set(theirs.items()):
        raise PairError(_refusal(target, draft, ours, theirs, sorted(ordinary)))
    if not differing:
        return CommonVocabulary(size, None)
    excluded = torch.zeros(size, dtype=torch.bool, device=draft.device)
    excluded[torch.tensor(differing, device=draft.device)] = True
    note = f"{len(differing)} special or added tokens differ between target and draft; the draft never proposes them."
    return CommonVocabulary(size, excluded, note)


def _by_id(tokenizer: object, size: int) -> dict[int, str]:
    return {number: token for token, number in tokenizer.get_vocab().items() if number < size}


def _added(tokenizer: object) -> set[int]:
    return set(getattr(tokenizer, "added_tokens_decoder", {}) or {})


def _refusal(
    target: LanguageModel, draft: LanguageModel, ours: dict[int, str], theirs: dict[int, str], ordinary: list[int]
) -> str:
    text = f"{draft.name} cannot draft for {target.name}: their tokenizers differ"
    if ordinary:
        first = ordinary[0]
        text += f" in {len(ordinary)} of {len(ours)} tokens (id {first}: {ours[first]!r} and {theirs[first]!r})"
    return text + ". Choose a draft of the target's own family, or use this one as the draft 'cross-tokenizer'."


@dataclass(frozen=True, slots=True)
class ReducedVocabulary:
    """`ids` (n,) of the target's `size`; every other id has no chance."""

    size: int
    ids: Tensor

    def restrict(self, logits: Tensor) -> Tensor:
        """Logits over the n ids in their order, or over all of them: (..., n or size) -> (..., size)."""
        said = logits if logits.shape[-1] == len(self.ids) else logits.index_select(-1, self.ids)
        wide = logits.new_full((*logits.shape[:-1], self.size), -torch.inf)
        return wide.index_copy_(-1, self.ids, said)


def vocabulary_of(target: LanguageModel, ids: Tensor | None) -> Restriction:
    """What a draft with the target's own ids can say: all of them where `ids` is None."""
    return CommonVocabulary(target.vocabulary, None) if ids is None else ReducedVocabulary(target.vocabulary, ids)
