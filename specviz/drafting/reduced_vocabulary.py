"""A draft that can say some of the target's ids only: cheaper, since most of a small model's weights are its head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.drafting.drawn_block import Restriction
from specviz.drafting.vocabulary import CommonVocabulary
from specviz.models import LanguageModel


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
