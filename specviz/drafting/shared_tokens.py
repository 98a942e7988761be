"""The tokens that two tokenizers share: the same bytes, whatever their ids and however a vocabulary spells them.

A draft with another tokenizer may draw from these alone (token-level intersection, Timor et al. 2025): its logits over
them, laid out by the target's ids, make a q like any other, so the rule stays exact. The draft itself is not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from specviz.core.text import byte_table
from specviz.models import LanguageModel


@dataclass(frozen=True, slots=True)
class SharedTokens:
    """Pairs of ids, one to one: `target_ids[i]` and `draft_ids[i]` (n,) on the device; `size`: the target's vocabulary.

    `to_draft` is the same for the host; `table` (size,) the same for the device, 0 where nothing is shared.
    """

    size: int
    target_ids: Tensor
    draft_ids: Tensor
    to_draft: dict[int, int]
    table: Tensor

    def restrict(self, logits: Tensor) -> Tensor:
        """The draft's logits by the target's ids: (..., draft vocabulary) -> (..., size), -inf where it has no say."""
        wide = logits.new_full((*logits.shape[:-1], self.size), -torch.inf)
        wide[..., self.target_ids] = logits[..., self.draft_ids]
        return wide

    def in_draft(self, token: Tensor) -> Tensor:
        """A shared token () of the target in the draft's ids, ()."""
        return self.table.index_select(0, token[None])[0]  # table[token] would make the host wait


def shared_tokens(target: LanguageModel, draft: LanguageModel) -> SharedTokens:
    """Match the two vocabularies by bytes; the ends of a text match each other by their role."""
    ours, theirs = _by_bytes(target), _by_bytes(draft)
    pairs = {ours[spelt]: theirs[spelt] for spelt in ours.keys() & theirs.keys()}
    ends = [[one for one in model.eos_ids if one < model.vocabulary] for model in (target, draft)]
    if all(ends) and ends[0][0] not in pairs and ends[1][0] not in pairs.values():
        pairs[ends[0][0]] = ends[1][0]
    pairs = dict(sorted(pairs.items()))
    table = torch.zeros(target.vocabulary, dtype=torch.long)
    ids = torch.tensor([list(pairs), list(pairs.values())], dtype=torch.long)
    table[ids[0]] = ids[1]
    ids, table = ids.to(draft.device), table.to(draft.device)
    return SharedTokens(target.vocabulary, ids[0], ids[1], pairs, table)


def special_ids(model: LanguageModel) -> frozenset[int]:
    """Ids that are no text: the tokenizer's special ones, and those that end a text."""
    return frozenset((*model.tokenizer.all_special_ids, *model.eos_ids))


def token_bytes(tokenizer: Any, special: frozenset[int]) -> dict[int, bytes]:
    """The bytes of every token; of a special one its name between NULs, which no ordinary text has."""
    vocabulary = tokenizer.get_vocab()
    spell = _byte_level if "Ġ" in vocabulary else _marked
    return {
        number: b"\0" + name.encode() + b"\0" if number in special else spell(name)
        for name, number in vocabulary.items()
    }


def _by_bytes(model: LanguageModel) -> dict[bytes, int]:
    """{bytes: id}; of two tokens with the same bytes the last, which is no single byte's spare one."""
    spelt = token_bytes(model.tokenizer, special_ids(model))
    return {spelt[number]: number for number in sorted(spelt) if number < model.vocabulary}


def _byte_level(name: str) -> bytes:
    """Byte-level BPE (Radford et al. 2019) writes a character a byte; tokens added later are plain text."""
    table = byte_table()
    if all(character in table for character in name):
        return bytes(table[character] for character in name)
    return name.encode()


def _marked(name: str) -> bytes:
    """SentencePiece (Kudo and Richardson 2018) marks a space, and spells a lone byte as `<0x0A>`."""
    if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
        return bytes.fromhex(name[3:5])
    return name.replace("\u2581", " ").encode()
