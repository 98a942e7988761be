"""A cascade of guesses that cost nothing, without any draft model: text of the run, table, the target's own lists.

In order: `match`, what followed the same tokens earlier in this run; `table`, n-grams counted beforehand from text that
the target wrote; `recycling`, what the target favoured after the token when it last read it; `alone`, what it favours
after the token if it knows nothing else. Each drafted token names its source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from specviz.drafting.guess_sources import Alone, Match, Recycling, Source, Table
from specviz.drafting.guesser import TREE, Guesser, Sourced, shape_option
from specviz.drafting.ngram_file import table_for
from specviz.drafting.ngrams import MAX_DOUBT, MAX_ORDER, NgramTable
from specviz.drafting.strategy import Drafter, Run, Strategy, option
from specviz.models import LanguageModel
from specviz.traces import SourceInfo

# Chances by rank to begin with, where no other source gives the token and where one does. Measured on greedy chat
# replies of SmolLM2-135M with a table of 0.2 M tokens of its own text.
_MATCH = (0.4, 0.4, 0.4, 0.4, 0.06, 0.045), (0.9, 0.85, 0.6, 0.5, 0.35, 0.19)
_RECYCLING = (0.2, 0.065, 0.035, 0.016, 0.014, 0.008, 0.007, 0.005), (0.3, 0.14, 0.06, 0.04, 0.03, 0.03, 0.03, 0.02)
_ALONE = (0.05, 0.02, 0.02, 0.01, 0.01, 0.008, 0.008, 0.008)
_TABLE = (0.35, 0.25, 0.1), (0.9, 0.8, 0.6)  # of the share that was counted, by the context's length, longest first


@dataclass(frozen=True)
class Cascade(Strategy):
    name: ClassVar[str] = "cascade"
    label: ClassVar[str] = "Cascade of free guesses"
    help: ClassVar[str] = (
        "Guesses from the text so far, from a table of the target's own phrases and from its earlier second thoughts. "
        "Costs next to nothing."
    )
    needs: ClassVar[frozenset[str]] = frozenset({"choices"})

    sources: ClassVar[tuple[SourceInfo, ...]] = (Match.info, Table.info, Recycling.info, Alone.info)

    shape: str = shape_option(TREE)
    table: str = option("", help="path of a table of n-grams (.npz); empty: the target's own, if it has one", path=True)
    counted: NgramTable | None = field(default=None, compare=False, repr=False)
    table_note: str | None = field(default=None, compare=False, repr=False)

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        strategy = super().make(target, draft_model, options)
        counted, note = table_for(target, strategy.table)
        return replace(strategy, counted=counted, table_note=note)

    @property
    def note(self) -> str | None:
        return self.table_note or "without a table: this target has none of its own"

    def start(self, run: Run) -> Drafter:
        return Guesser(_sources(self.counted), self.shape)


def _sources(table: NgramTable | None) -> list[Sourced]:
    """The sources in their order, those that there are."""
    recycling = Sourced(Recycling(len(_RECYCLING[0])), *_RECYCLING)
    if table is None:
        return [Sourced(Match(), *_MATCH), recycling]
    alone: Source = Alone(table, len(_ALONE))
    return [
        Sourced(Match(), *_MATCH),
        Sourced(Table(table), *(_table_chances(shares) for shares in _TABLE)),
        recycling,
        Sourced(alone, _ALONE, _ALONE),
    ]


def _table_chances(trust: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(trust[size] * 2 ** (-doubt / 4) for size in range(MAX_ORDER) for doubt in range(MAX_DOUBT + 1))
