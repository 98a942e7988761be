"""A smaller model of the target's family drafts, token by token (Leviathan et al. 2023, Chen et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from specviz.drafting.model_drafter import ModelDrafter
from specviz.drafting.strategy import Drafter, Run, Strategy, same_device
from specviz.drafting.vocabulary import common_vocabulary
from specviz.models import LanguageModel


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
