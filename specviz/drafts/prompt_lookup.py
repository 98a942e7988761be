"""Prompt lookup: the text so far drafts for itself (Saxena 2023, prompt-lookup-decoding).

The longest n-gram at the end of the text that stood there before, at its latest place, is followed by what followed it
then. Where that runs into the end of the text it goes on into the draft itself, so a period is repeated at any k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from specviz.core.errors import InputError
from specviz.drafting.strategy import NOTHING, Drafter, Proposal, Run, Seen, Strategy, option


@dataclass(frozen=True)
class PromptLookup(Strategy):
    name: ClassVar[str] = "prompt-lookup"
    label: ClassVar[str] = "Prompt lookup"
    help: ClassVar[str] = "Copies what followed the same words earlier in the text. Costs next to nothing."

    max_ngram: int = option(3, 1, 16, "longest run of tokens to match")
    min_ngram: int = option(1, 1, 16, "shortest run of tokens to match")

    def __post_init__(self) -> None:
        if self.min_ngram > self.max_ngram:
            raise InputError("The option min_ngram must not exceed max_ngram.")

    def start(self, run: Run) -> Drafter:
        return _Lookup(range(self.max_ngram, self.min_ngram - 1, -1))


class _Lookup(Drafter):
    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._ids: list[int] = []
        self._latest: dict[tuple[int, ...], int] = {}  # n-gram -> index of what followed it last

    def propose(self, k: int) -> Proposal:
        source = self._match()
        if source is None or k == 0:
            return NOTHING
        text = self._ids.copy()
        for index in range(source, source + k):
            text.append(text[index])
        return Proposal(tuple(text[len(self._ids) :]))

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        for token in kept_ids:
            end = len(self._ids)
            for size in self._sizes:
                if size <= end:
                    self._latest[tuple(self._ids[end - size :])] = end
            self._ids.append(token)

    def _match(self) -> int | None:
        for size in self._sizes:
            if size <= len(self._ids):
                index = self._latest.get(tuple(self._ids[-size:]))
                if index is not None:
                    return index
        return None
