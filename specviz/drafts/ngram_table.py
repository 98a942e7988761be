"""An n-gram table drafts: what most often followed the last few tokens in text counted beforehand.

The best text to count is what the target itself wrote; the package brings such tables for some targets. Nothing is
drawn and no pass is run; without a table the run's own prompt is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from specviz.drafting.ngram_file import table_for
from specviz.drafting.ngrams import MAX_ORDER, NgramTable, count_ngrams
from specviz.drafting.strategy import NOTHING, Drafter, Proposal, Run, Seen, Strategy, option
from specviz.models import LanguageModel


@dataclass(frozen=True)
class NgramTableDraft(Strategy):
    name: ClassVar[str] = "ngram-table"
    label: ClassVar[str] = "N-gram table"
    help: ClassVar[str] = (
        "Guesses what most often followed the same few tokens in text counted before. Costs next to nothing."
    )

    table: str = option(
        "", help="path of a table of n-grams (.npz); empty: the target's own, or else the prompt is counted", path=True
    )
    counted: NgramTable | None = field(default=None, compare=False, repr=False)
    table_note: str | None = field(default=None, compare=False, repr=False)

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        strategy = super().make(target, draft_model, options)
        counted, note = table_for(target, strategy.table)
        return replace(strategy, counted=counted, table_note=note)

    @property
    def note(self) -> str | None:
        return self.table_note

    def start(self, run: Run) -> Drafter:
        return _TableDrafter(self.counted or count_ngrams([run.prompt_ids]))


class _TableDrafter(Drafter):
    def __init__(self, table: NgramTable) -> None:
        self._table = table
        self._last: list[int] = []

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        self._last = [*self._last, *kept_ids][-MAX_ORDER:]

    def propose(self, k: int) -> Proposal:
        text = self._last.copy()
        while len(text) < len(self._last) + k:
            tokens = self._table.after(text)
            if not tokens:
                break
            text.append(tokens[0])
        drafted = tuple(text[len(self._last) :])
        return Proposal(drafted) if drafted else NOTHING
