"""An n-gram table drafts: what most often followed the last few tokens in text counted beforehand.

The best text to count is what the target itself wrote. Nothing is drawn and no pass is run; without a table the run's
own prompt is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

from specviz.drafts.ngrams import MAX_ORDER, NgramTable, count_ngrams, load_table
from specviz.drafts.strategy import NOTHING, Drafter, Proposal, Run, Seen, Strategy, option
from specviz.errors import InputError, PairError
from specviz.models import LanguageModel


@dataclass(frozen=True)
class NgramTableDraft(Strategy):
    name: ClassVar[str] = "ngram-table"
    label: ClassVar[str] = "N-gram table"
    help: ClassVar[str] = (
        "Guesses what most often followed the same few tokens in text counted before. Costs next to nothing."
    )

    table: str = option("", help="path of a table of n-grams (.npz); empty: count the prompt")
    counted: NgramTable | None = field(default=None, compare=False, repr=False)

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        strategy = super().make(target, draft_model, options)
        if not strategy.table:
            return strategy
        counted = _table(Path(strategy.table).expanduser())
        if counted.largest_id >= target.vocabulary:
            raise PairError(
                f"The n-gram table '{strategy.table}' holds tokens that {target.name} does not have; "
                "use one that was counted with the target's own tokenizer."
            )
        return replace(strategy, counted=counted)

    @property
    def note(self) -> str | None:
        return None if self.counted is None else f"a table of {len(self.counted)} contexts"

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
            token = self._table.after(text)
            if token is None:
                break
            text.append(token)
        drafted = tuple(text[len(self._last) :])
        return Proposal(drafted) if drafted else NOTHING


def _table(path: Path) -> NgramTable:
    """The table of a file, read once as long as the file stays as it is."""
    try:
        facts = path.stat()
    except OSError as error:
        raise InputError(f"The n-gram table '{path}' cannot be read; give the path of a file that is there.") from error
    return _read(path, (facts.st_mtime_ns, facts.st_size))


@lru_cache(maxsize=4)
def _read(path: Path, state: tuple[int, int]) -> NgramTable:
    return load_table(path)
